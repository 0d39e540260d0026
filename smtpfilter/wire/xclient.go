package wire

import (
	"net/netip"
	"strconv"
	"strings"
)

// This file is about what a trusted proxy says of the client that it speaks for:
// XCLIENT (https://www.postfix.org/XCLIENT_README.html), which changes who the
// client is, and XFORWARD (https://www.postfix.org/XFORWARD_README.html), which
// changes what is logged of it.

// The attributes that are understood, as EHLO offers them.
const (
	xclientAttributes  = "NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT"
	xforwardAttributes = "NAME ADDR PORT PROTO HELO IDENT SOURCE"
)

// Client is who speaks. Its Addr is what limits and lists of clients go by. It
// is known from Config.Connected on.
func (c *Conn) Client() Client {
	client := Client{Addr: c.peer, Local: c.local}
	if c.told != nil {
		client = *c.told
	}
	if client.Helo == "" {
		client.Helo = c.helo.Arg
	}
	if client.Proto == "" {
		client.Proto = "SMTP"
		if c.helo.Verb == "EHLO" {
			client.Proto = "ESMTP"
		}
	}
	return client
}

// Forwarded is the client that a trusted proxy names for the next transaction
// (XFORWARD), for logs and for the next hop's log: the Client, with what the proxy
// has said of it in place. Client itself does not change by it.
func (c *Conn) Forwarded() Client {
	client := c.Client()
	if c.passed == nil {
		return client
	}
	forwarded := *c.passed
	if forwarded.Proto == "" {
		forwarded.Proto = client.Proto
	}
	return forwarded
}

// Trusted reports whether the client is a proxy that is believed what it says of others.
func (c *Conn) Trusted() bool { return c.trusted() }

// trusted reports whether the client may use XCLIENT and XFORWARD. The address
// of the connection decides, or the one that PROXY has named, and never one that
// XCLIENT has: so the same proxy may go on to speak for others.
func (c *Conn) trusted() bool { return contains(c.cfg.TrustedProxies, c.peer.Addr()) }

// IsProxy reports whether the client is a trusted proxy that speaks for itself: a
// source of PROXY headers whose header names nobody, or one that may say XCLIENT
// and has not. It reports false for a client that a proxy names, even if the
// client's address is among those of the proxies.
func (c *Conn) IsProxy() bool {
	if c.told != nil {
		return false
	}
	return c.trusted() || !c.named && contains(c.cfg.ProxySources, c.peer.Addr())
}

// notForProxies is the reply to XCLIENT and XFORWARD where they must not come.
func (c *Conn) notForProxies(cmd Command) Reply {
	switch {
	case len(c.cfg.TrustedProxies) == 0:
		return NewReply(502, "5.5.1 "+cmd.Verb+" is not offered")
	case !c.trusted():
		return NewReply(550, "5.7.0 "+cmd.Verb+" is not allowed from here")
	case c.inMail:
		return NewReply(503, "5.5.1 "+cmd.Verb+" is not allowed inside a mail transaction")
	}
	return Reply{}
}

// xclient carries out XCLIENT. The session begins anew, with a client of which
// ADDR makes another one: without it, what was said before still holds.
func (c *Conn) xclient(cmd Command) {
	if reply := c.notForProxies(cmd); !reply.IsZero() {
		c.refuseOwn(cmd, reply)
		return
	}
	client := Client{Addr: c.peer, Local: c.local}
	if c.told != nil {
		client = *c.told
	}
	if hasAttribute(cmd.rest, "ADDR") {
		client = Client{Local: c.local}
	}
	if !client.setAll(cmd.rest, xclientAttributes) {
		c.refuseOwn(cmd, NewReply(501, "5.5.4 Bad XCLIENT attribute"))
		return
	}
	c.forget()
	c.told = &client
	c.errors, c.refusals, c.idle = 0, 0, 0
	reply := c.refusal()
	if reply.IsZero() {
		reply = c.greeting()
	}
	c.out = reply.Append(c.out)
}

// xforward carries out XFORWARD. Several commands add up until a transaction has
// ended; ADDR makes all else unknown that was not said.
func (c *Conn) xforward(cmd Command) {
	if reply := c.notForProxies(cmd); !reply.IsZero() {
		c.refuseOwn(cmd, reply)
		return
	}
	client := c.Forwarded()
	if hasAttribute(cmd.rest, "ADDR") {
		client = Client{Proto: client.Proto}
	}
	if !client.setAll(cmd.rest, xforwardAttributes) {
		c.refuseOwn(cmd, NewReply(501, "5.5.4 Bad XFORWARD attribute"))
		return
	}
	c.passed, c.mailed = &client, false
	c.out = NewReply(250, "2.0.0 Ok").Append(c.out)
}

// dropForwarded ends what XFORWARD has said once the transaction is over for
// which it was said.
func (c *Conn) dropForwarded(cmd Command) {
	switch cmd.Verb {
	case "RSET", "EHLO", "HELO":
		c.passed = nil
	default:
		if c.mailed && !c.inMail {
			c.passed = nil
		}
	}
}

// hasAttribute reports whether a command's arguments name an attribute.
func hasAttribute(args, name string) bool {
	for arg := range strings.FieldsSeq(args) {
		if key, _, _ := strings.Cut(arg, "="); strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}

// setAll takes the attributes of XCLIENT or XFORWARD, of which those in allowed
// may come, and reports whether all are well-formed.
func (cl *Client) setAll(args, allowed string) bool {
	count := 0
	for arg := range strings.FieldsSeq(args) {
		key, value, _ := strings.Cut(arg, "=")
		key = strings.ToUpper(key)
		value, ok := decodeXtext(value)
		if !ok || !hasAttribute(allowed, key) || !cl.set(key, value) {
			return false
		}
		count++
	}
	return count > 0
}

// set takes one attribute. What is unavailable becomes unknown.
func (cl *Client) set(name, value string) bool {
	if strings.EqualFold(value, "[UNAVAILABLE]") || strings.EqualFold(value, "[TEMPUNAVAIL]") {
		value = ""
	}
	switch name {
	case "NAME":
		cl.Name = value
		return value == "" || isHostName(value)
	case "HELO":
		cl.Helo = value
		return len(value) <= 255 && isGraphic(value)
	case "LOGIN":
		cl.Login = value
		return len(value) <= 255 && isText(value)
	case "IDENT":
		cl.ID = value
		return len(value) <= 255 && isGraphic(value)
	case "PROTO":
		cl.Proto = strings.ToUpper(value)
		return value == "" || cl.Proto == "SMTP" || cl.Proto == "ESMTP"
	case "SOURCE":
		return value == "" || strings.EqualFold(value, "LOCAL") || strings.EqualFold(value, "REMOTE")
	case "ADDR":
		return setAddr(&cl.Addr, value)
	case "PORT":
		return setPort(&cl.Addr, value)
	case "DESTADDR":
		return setAddr(&cl.Local, value)
	case "DESTPORT":
		return setPort(&cl.Local, value)
	}
	return false
}

// setAddr takes an IPv4 address, or an IPv6 address behind "IPV6:".
func setAddr(a *netip.AddrPort, value string) bool {
	if value == "" {
		*a = netip.AddrPort{}
		return true
	}
	v6 := len(value) > 5 && strings.EqualFold(value[:5], "IPV6:")
	if v6 {
		value = value[5:]
	}
	ip, err := netip.ParseAddr(value)
	if err != nil || ip.Zone() != "" || v6 != ip.Is6() {
		return false
	}
	*a = netip.AddrPortFrom(ip.Unmap(), a.Port())
	return true
}

func setPort(a *netip.AddrPort, value string) bool {
	if value == "" {
		value = "0"
	}
	port, err := strconv.ParseUint(value, 10, 16)
	*a = netip.AddrPortFrom(a.Addr(), uint16(port))
	return err == nil
}

func isHostName(s string) bool {
	for i := range len(s) {
		if !isDomainByte(s[i]) {
			return false
		}
	}
	return validDomain(s)
}
