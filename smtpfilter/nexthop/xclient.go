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

// XCLIENT, which Postfix's XCLIENT_README defines, makes the next hop treat a
// connection as a client's own, access and relaying included. It holds until the
// connection ends or another XCLIENT comes. Postfix (3.7) takes no other once it
// was told of somebody who may not say XCLIENT himself: its connections are one
// client's for good.

// errXCLIENT is wrapped by the errors about a next hop that refused to be told
// who the client is.
var errXCLIENT = errors.New("XCLIENT refused")

// identity is all that a next hop can learn about a client: the attributes of XCLIENT,
// and the name in the EHLO after it.
type identity struct {
	attributes [8]xforwardAttribute // in the order of xclientAttributes
	hello      string
}

// identityOf returns a client's identity.
func (s *SMTP) identityOf(client *Client) identity {
	return identity{xclientAttributes(client), s.nameFor(client)}
}

// knows reports whether telling the next hop about a client would change nothing: the
// connection was told the same before. An attribute that the next hop takes neither then
// nor now does not count. Many take no port, so that all connections of a client are alike.
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

// takes reports whether the next hop offered an attribute of XCLIENT when it was told the
// client, or offers it now.
func (c *conn) acceptsAttribute(attribute string) bool {
	return offersAttribute(c.attributes, attribute) || offersAttribute(c.offers["XCLIENT"], attribute)
}

// usesXCLIENT reports whether XCLIENT is used where it is offered.
func (s *SMTP) usesXCLIENT() bool {
	return s.config.Identity == IdentityAuto || s.config.Identity == IdentityXCLIENT
}

// needsXCLIENT reports whether no connection without XCLIENT may carry mail.
func (s *SMTP) needsXCLIENT() bool {
	return s.config.Identity == IdentityXCLIENT || s.xclientRequired.Load()
}

// findName finds the client's name out, where it is among the attributes that
// are offered.
func (c *Client) findName(ctx context.Context, offered []string) {
	if c.LookupName == nil || c.Name != "" || !offersAttribute(offered, "NAME") {
		return
	}
	c.Name = c.LookupName(ctx)
	c.LookupName = nil
}

// identify has the next hop take the connection for the client's, where it does
// not yet. A reply is its refusal of that client, in answer to EHLO. Without one,
// and without an error, the connection may carry that client's mail, and else
// nobody's.
func (s *SMTP) identify(ctx context.Context, c *conn, client *Client) (refusal wire.Reply, err error) {
	if !s.usesXCLIENT() {
		return refusal, nil
	}
	offered, ok := c.offers["XCLIENT"]
	// What was told before is compared with this client's, offered now or not.
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
		if !reply.Positive() {
			return refusal, &ReplyError{Reply: reply, Err: errXCLIENT}
		}
	}
	err = c.helloAgain(id.hello)
	var refused *ReplyError
	if errors.As(err, &refused) {
		c.errorCount = maxErrors // nothing else may be said on it
		return refused.Reply, nil
	}
	if err == nil {
		s.learn(c)
	}
	return refusal, err
}

// nameFor is what is said in EHLO after XCLIENT: the client's own name, since
// servers take that for its, and not XCLIENT's HELO.
func (s *SMTP) nameFor(client *Client) string {
	bad := func(r rune) bool { return r < '!' || r > '~' }
	if client.Helo == "" || len(client.Helo) > xforwardMaxValue || strings.ContainsFunc(client.Helo, bad) {
		return s.config.Hostname
	}
	return client.Helo
}

// acceptsXCLIENTAgain reports whether a connection that was told a client can be told
// another, with nothing of the first one left over.
func (c *conn) acceptsXCLIENTAgain() bool {
	offered, ok := c.offers["XCLIENT"]
	return ok && !slices.ContainsFunc(c.attributes, func(a string) bool { return !offersAttribute(offered, a) })
}

// xclientCommands makes the commands that tell the next hop who the client is,
// with the attributes that it offers.
//
// What does not fit in one command goes in others before it: the last one has
// the address, with which Postfix stops taking further ones, and the login,
// which it forgets at the next one.
func xclientCommands(offered []string, id *identity) []string {
	var commands []string // the last one first
	command := "XCLIENT"
	for _, a := range id.attributes {
		if a.value == "" || !offersAttribute(offered, a.name) {
			continue
		}
		text := " " + a.name + "=" + a.value
		if len(command)+len(text) > xforwardMaxCommand {
			commands = append(commands, command)
			command = "XCLIENT"
		}
		command += text
	}
	if command != "XCLIENT" {
		commands = append(commands, command)
	}
	slices.Reverse(commands)
	return commands
}

// xclientAttributes are the attributes, the most important first. An empty value
// is not sent: PROTO has no word for unknown.
func xclientAttributes(client *Client) [8]xforwardAttribute {
	addr, port := addrAttributes(client.Addr)
	local, localPort := addrAttributes(client.Local)
	proto := client.Proto
	if proto != "SMTP" && proto != "ESMTP" {
		proto = ""
	}
	return [...]xforwardAttribute{
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

// addrAttributes are an address and a port as both commands write them; "" where
// unknown.
func addrAttributes(a netip.AddrPort) (addr, port string) {
	ip := plainAddr(a.Addr())
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
// is unknown: to say it in another way would name another client.
func xclientValue(v string) string {
	text := xtext(v)
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if v == "" || len(text) > xforwardMaxValue || strings.ContainsFunc(v, control) {
		return xforwardUnknown
	}
	return text
}
