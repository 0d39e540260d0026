package nexthop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"spamgate/smtpfilter/wire"
)

// relayProbe is a recipient that no mail server is the last stop for: whoever
// takes it relays.
const relayProbe = "relay-test@example.net"

// ErrUndecided is wrapped by CheckRelay where the next hop has answered neither
// yes nor no: with a 4xx, or not even to MAIL. It may relay another time.
var ErrUndecided = errors.New("does not say whether it relays")

// stranger is a client that no mail server knows, from a network that no client
// is in (RFC 5737).
var stranger = Client{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 0)}

// CheckRelay asks the next hop whether it would take mail from us for a
// recipient that is not its own, and sends none: MAIL FROM:<>, RCPT
// TO:<relay-test@example.net>, RSET, QUIT. Where it is told the client, by XCLIENT
// or the PROXY protocol, that is a stranger, 192.0.2.1; elsewhere a next hop that
// relays for us relays for everyone who may speak to us. Only a 5xx to RCPT is a
// no. The reply is the one that decided, and a refusal of this one address alone
// is no answer. An error says that the next hop could not be asked, or wraps
// ErrUndecided.
//
// A no that was said to a stranger told by XCLIENT holds for strangers: from then
// on a connection that cannot be told its client carries no mail, whatever
// Identity says.
func (s *SMTP) CheckRelay(ctx context.Context) (relays bool, reply wire.Reply, err error) {
	client := stranger
	c, err := s.connect(ctx, &client)
	if err != nil {
		return false, wire.Reply{}, fmt.Errorf("next hop %s: relay check: %w", s, err)
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	reply, err = s.identify(ctx, c, &client)
	if err == nil && !reply.IsZero() {
		err = fmt.Errorf("%w: %s was answered with %q", ErrUndecided, c.verb, reply)
	}
	if err == nil {
		reply, err = c.askRelay()
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil || errors.Is(err, ErrUndecided) {
		c.quit(s.config.Timeouts.Quit)
	}
	c.Close()
	if err != nil {
		return false, reply, fmt.Errorf("next hop %s: relay check: %w", s, err)
	}
	if c.told && !reply.Positive() {
		s.mustTell.Store(true)
	}
	return reply.Positive(), reply, nil
}

// refusesRelay reports whether a reply to RCPT refuses to relay. Where it finds
// fault with the address itself (RFC 3463, X.1.z; RFC 7504: 556, the domain takes
// no mail), other addresses may well be relayed to.
func refusesRelay(r wire.Reply) bool {
	return r.Permanent() && r.Code != 556 && !strings.HasPrefix(r.Lines[0], "5.1.")
}

// askRelay asks for the recipient that should be refused, and takes it back.
func (c *conn) askRelay() (wire.Reply, error) {
	reply, err := c.ask("MAIL FROM:<>", c.timeouts.Mail, 0)
	if err == nil && !reply.Positive() {
		err = fmt.Errorf("%w: MAIL FROM:<> was answered with %q", ErrUndecided, reply)
	}
	if err != nil {
		return reply, err
	}
	reply, err = c.ask("RCPT TO:<"+relayProbe+">", c.timeouts.Rcpt, 0)
	if err == nil && !reply.Positive() && !refusesRelay(reply) {
		err = fmt.Errorf("%w: RCPT TO:<%s> was answered with %q", ErrUndecided, relayProbe, reply)
	}
	if err != nil {
		return reply, err
	}
	// The answer stands, whatever RSET is answered with.
	_, err = c.ask("RSET", c.timeouts.Mail, 0)
	return reply, err
}
