package nexthop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"spamgate/smtpfilter/wire"
)

// relayProbe is a recipient at no mail server: a server that accepts it relays.
const relayProbe = "relay-test@example.net"

// ErrUndecided is wrapped by CheckRelay if the next hop has answered neither yes
// nor no: with a 4xx, or with a refusal of MAIL. It may relay another time.
var ErrUndecided = errors.New("does not say whether it relays")

// stranger is a client from a network without clients (RFC 5737), whom no mail
// server trusts.
var stranger = Client{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 0)}

// CheckRelay asks the next hop whether it would accept mail from us for a recipient
// elsewhere, and sends none: MAIL FROM:<>, RCPT TO:<relay-test@example.net>, RSET,
// QUIT. With XCLIENT or the PROXY protocol the client is a stranger, 192.0.2.1;
// without them a next hop that relays for us relays for all our clients. Only a 5xx
// to RCPT is a no, unless it refuses this one address, or a 530 to MAIL if the server
// offers AUTH. The reply is the one that decided. An error says that the next hop could
// not be asked, or wraps ErrUndecided.
//
// If a stranger named by XCLIENT gets a no, that holds for strangers only: from then
// on a connection without XCLIENT carries no mail, whatever Identity says.
func (s *SMTP) CheckRelay(ctx context.Context) (relays bool, reply wire.Reply, err error) {
	relays, reply, err = s.checkRelay(ctx)
	if errors.Is(err, errUpgraded) {
		relays, reply, err = s.checkRelay(ctx)
	}
	return relays, reply, err
}

// checkRelay does the work of CheckRelay.
func (s *SMTP) checkRelay(ctx context.Context) (relays bool, reply wire.Reply, err error) {
	client := stranger
	c, err := s.connect(ctx, &client)
	if err != nil {
		return false, wire.Reply{}, fmt.Errorf("next hop %s: relay check: %w", s, err)
	}
	err = c.during(ctx, func() error {
		if reply, err = s.identify(ctx, c, &client); err != nil {
			return err
		}
		if !reply.IsZero() {
			return undecided(c.verb, reply)
		}
		if reply, err = c.askRelay(); c.wantsTLS(reply) {
			err = s.sessionError(c, "", reply)
		}
		return err
	})
	if err == nil || isAny(err, []error{ErrUndecided, ErrSession}) {
		c.quit(s.config.Timeouts.Quit)
	}
	c.Close()
	if err != nil {
		return false, reply, fmt.Errorf("next hop %s: relay check: %w", s, err)
	}
	if c.xclientSent && !reply.Positive() {
		s.xclientRequired.Store(true)
	}
	return reply.Positive(), reply, nil
}

// undecided returns the error for a reply that does not say whether the server
// relays.
func undecided(command string, reply wire.Reply) error {
	return fmt.Errorf("%w: %s was answered with %q", ErrUndecided, command, reply)
}

// refusesRelay reports whether a reply to RCPT refuses to relay. If it refuses the
// address itself (RFC 3463, X.1.z; RFC 7504: 556, the domain accepts no mail), the
// server may still relay to other addresses.
func refusesRelay(r wire.Reply) bool {
	return r.Permanent() && r.Code != 556 && !strings.HasPrefix(r.Lines[0], "5.1.")
}

// askRelay asks for the recipient that should be refused, and resets.
func (c *conn) askRelay() (wire.Reply, error) {
	const mail, rcpt = "MAIL FROM:<>", "RCPT TO:<" + relayProbe + ">"
	reply, err := c.ask(mail, c.timeouts.Mail, 0)
	if err == nil && c.wantsLogin(reply) {
		return reply, nil // a submission server: it relays only after a login
	}
	if err == nil && !reply.Positive() {
		err = undecided(mail, reply)
	}
	if err != nil {
		return reply, err
	}
	reply, err = c.ask(rcpt, c.timeouts.Rcpt, 0)
	if session := aboutSession(reply) && !c.wantsLogin(reply); err == nil && !reply.Positive() && (session || !refusesRelay(reply)) {
		err = undecided(rcpt, reply)
	}
	if err == nil {
		_, err = c.ask("RSET", c.timeouts.Mail, 0) // its reply changes nothing
	}
	return reply, err
}
