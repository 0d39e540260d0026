package nexthop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"spamgate/smtpfilter/wire"
)

// XCLIENT (Postfix's XCLIENT_README) makes the next hop treat a connection as the
// client's own, access and relaying included. It holds until the connection ends or
// another XCLIENT comes. Postfix (3.7) accepts no other after it was given a client
// that may not use XCLIENT: then the connection stays that client's.

// errXCLIENT is wrapped by the errors for a refused XCLIENT.
var errXCLIENT = errors.New("XCLIENT refused")

// identity is all that a next hop receives about a client: the attributes of
// XCLIENT, and the name in the EHLO after it.
type identity struct {
	attributes [8]attribute // in the order of xclientAttributes
	hello      string
}

// identityOf returns a client's identity.
func (s *server) identityOf(client *Client) identity {
	return identity{xclientAttributes(client), s.nameFor(client)}
}

// hasIdentity reports whether the connection has an identity already. Attributes
// that the next hop accepts neither then nor now do not count. Many accept no port,
// so that all connections of a client are alike.
func (c *conn) hasIdentity(id *identity) bool {
	if !c.xclientSent || c.identity.hello != id.hello {
		return false
	}
	for i, a := range id.attributes {
		if a != c.identity.attributes[i] && c.acceptsAttribute(a.name) {
			return false
		}
	}
	return true
}

// acceptsAttribute reports whether the next hop offered an attribute of XCLIENT at
// the last XCLIENT, or offers it now.
func (c *conn) acceptsAttribute(attribute string) bool {
	return offersAttribute(c.attributes, attribute) || offersAttribute(c.offers["XCLIENT"], attribute)
}

// acceptsXCLIENTAgain reports whether another XCLIENT can replace the identity of
// the connection entirely.
func (c *conn) acceptsXCLIENTAgain() bool {
	offered, ok := c.offers["XCLIENT"]
	return ok && !slices.ContainsFunc(c.attributes, func(a string) bool { return !offersAttribute(offered, a) })
}

// usesXCLIENT reports whether XCLIENT is used if it is offered.
func (s *server) usesXCLIENT() bool {
	return s.config.Identity == IdentityAuto || s.config.Identity == IdentityXCLIENT
}

// needsXCLIENT reports whether no connection without XCLIENT may carry mail.
func (s *server) needsXCLIENT() bool {
	return s.config.Identity == IdentityXCLIENT || s.xclientRequired.Load()
}

// WantsName reports whether t, or a member of it, is likely to want the name of a
// client, as far as its offers are known.
func WantsName(t Target) bool {
	return slices.ContainsFunc(servers(t), func(s *SMTP) bool {
		offers := s.Extensions()
		return s.usesXCLIENT() && offersAttribute(offers["XCLIENT"], "NAME") ||
			s.config.Identity != IdentityNone && offersAttribute(offers["XFORWARD"], "NAME")
	})
}

// findName looks up the client's name if NAME is among the offered attributes.
func (c *Client) findName(ctx context.Context, offered []string) {
	if c.LookupName == nil || c.Name != "" || !offersAttribute(offered, "NAME") {
		return
	}
	c.Name = c.LookupName(ctx)
	c.LookupName = nil
}

// identify gives the connection the client's identity with XCLIENT, if it does not
// have it yet. A reply refuses that client, in answer to EHLO. Without a reply and
// an error, the connection may carry mail of that client, and of nobody else.
func (s *server) identify(ctx context.Context, c *conn, client *Client) (refusal wire.Reply, err error) {
	if !s.usesXCLIENT() {
		return refusal, nil
	}
	offered, ok := c.offers["XCLIENT"]
	// The connection's identity is compared with this client's, even if NAME is no
	// longer offered.
	client.findName(ctx, offered)
	client.findName(ctx, c.attributes)
	id := s.identityOf(client)
	switch {
	case c.hasIdentity(&id):
		return refusal, nil
	case c.xclientSent && !c.acceptsXCLIENTAgain():
		return refusal, fmt.Errorf("%w: the connection is another client's", errXCLIENT)
	case !ok && s.needsXCLIENT():
		return refusal, ErrNoXCLIENT
	case !ok:
		return refusal, nil
	}
	c.xclientSent, c.identity, c.attributes = true, id, offered
	for _, command := range xclientCommands(offered, &id) {
		reply, err := c.ask(command, c.timeouts.Mail, 0)
		if err != nil {
			return refusal, fmt.Errorf("XCLIENT: %w", err)
		}
		switch {
		case reply.Positive():
		case xclientAboutSession(reply):
			return refusal, s.sessionError(c, "XCLIENT refused: ", reply)
		default:
			return refusal, &ReplyError{Reply: reply, Err: errXCLIENT}
		}
	}
	err = c.helloAgain(id.hello)
	var refused *ReplyError
	if errors.As(err, &refused) {
		c.errorCount = maxErrors // it must carry nothing else
		if aboutSession(refused.Reply) {
			return refusal, s.sessionError(c, c.verb+" refused: ", refused.Reply)
		}
		return refused.Reply, nil
	}
	if err == nil {
		s.learn(c)
	}
	return refusal, err
}

// xclientCommands returns the commands that give the next hop an identity. What does
// not fit in one command goes in others before it: the last one has the address,
// after which Postfix accepts no others, and the login, which it forgets at the next.
func xclientCommands(offered []string, id *identity) []string {
	commands := appendCommands(nil, "XCLIENT", offered, id.attributes[:])
	slices.Reverse(commands)
	return commands
}

// nameFor returns the name for EHLO after XCLIENT: the client's own, because servers
// use that and not XCLIENT's HELO.
func (s *server) nameFor(client *Client) string {
	bad := func(r rune) bool { return r < '!' || r > '~' }
	if client.Helo == "" || len(client.Helo) > maxAttributeValue || strings.ContainsFunc(client.Helo, bad) {
		return s.config.Hostname
	}
	return client.Helo
}

// xclientAttributes returns the attributes of XCLIENT, the most important first. An
// empty value is not sent: PROTO has no word for unknown.
func xclientAttributes(client *Client) [8]attribute {
	addr, port := addrAttributes(client.Addr)
	local, localPort := addrAttributes(client.Local)
	proto := client.Proto
	if proto != "SMTP" && proto != "ESMTP" {
		proto = ""
	}
	return [...]attribute{
		{"ADDR", xclientValue(addr)},
		{"LOGIN", xclientValue(client.Login)},
		{"NAME", xclientValue(client.Name)},
		{"PORT", xclientValue(port)},
		{"PROTO", proto},
		{"DESTADDR", xclientValue(local)},
		{"DESTPORT", xclientValue(localPort)},
		{"HELO", xclientValue(client.Helo)},
	}
}

// addrAttributes returns an address and a port as XCLIENT and XFORWARD have them; ""
// if unknown.
func addrAttributes(a netip.AddrPort) (addr, port string) {
	ip := wire.PlainAddr(a).Addr()
	if !ip.IsValid() {
		return "", ""
	}
	addr = ip.String()
	if ip.Is6() {
		addr = "IPV6:" + addr
	}
	if a.Port() != 0 {
		port = strconv.Itoa(int(a.Port()))
	}
	return addr, port
}

// xclientValue encodes a value. One that is empty, too long or has control bytes
// becomes unknown: if it were changed, it would name another client.
func xclientValue(v string) string {
	text := xtext(v)
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if v == "" || len(text) > maxAttributeValue || strings.ContainsFunc(v, control) {
		return unavailable
	}
	return text
}
