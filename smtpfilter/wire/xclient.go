package wire

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
)

// With XCLIENT (https://www.postfix.org/XCLIENT_README.html) a trusted proxy changes
// who the client is; with XFORWARD (https://www.postfix.org/XFORWARD_README.html) it
// changes what is logged about the client.

// The supported attributes, as EHLO offers them.
const (
	xclientAttributes  = "NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT"
	xforwardAttributes = "NAME ADDR PORT PROTO HELO IDENT SOURCE"
)

// identity is who the client is: the socket's peer, or the one that a proxy names.
type identity struct {
	cfg      *Config
	peer     netip.AddrPort // the client: the socket's peer, or the one that PROXY names
	local    netip.AddrPort // the address that peer connected to
	named    bool           // PROXY names peer
	xclient  *Client        // the client that XCLIENT names
	xforward *Client        // the client that XFORWARD names
	mailSeen bool           // a MAIL was accepted since XFORWARD
	helo     Command        // the last HELO or EHLO
}

// Helo returns the client's name in HELO or EHLO, and whether it was EHLO.
func (c *identity) Helo() (name string, extended bool) {
	return c.helo.Arg, c.helo.Verb == "EHLO"
}

// Client returns the client. Limits and lists of clients use its Addr, which is set
// before Config.Connected.
func (c *identity) Client() Client {
	client := Client{Addr: c.peer, Local: c.local}
	if c.xclient != nil {
		client = *c.xclient
	}
	proto := "SMTP"
	if c.helo.Verb == "EHLO" {
		proto = "ESMTP"
	}
	client.Helo, client.Proto = cmp.Or(client.Helo, c.helo.Arg), cmp.Or(client.Proto, proto)
	return client
}

// Forwarded returns the client for our log and the next hop's: the Client, with the
// attributes from XFORWARD for the next transaction. Client itself does not change.
func (c *identity) Forwarded() Client {
	client := c.Client()
	if c.xforward == nil {
		return client
	}
	forwarded := *c.xforward
	forwarded.Proto = cmp.Or(forwarded.Proto, client.Proto)
	return forwarded
}

// Trusted reports whether the client is a proxy that may use XCLIENT and XFORWARD. The
// address of the connection or of the PROXY header decides, never that of XCLIENT, so
// that the proxy may name other clients later.
func (c *identity) Trusted() bool { return contains(c.cfg.TrustedProxies, c.peer.Addr()) }

// IsProxy reports whether the client is a trusted proxy that names no client: a source
// of PROXY headers whose header has no address, or one that may use XCLIENT and has
// not. It returns false for a client that a proxy names, even if that client's address
// is a proxy's.
func (c *identity) IsProxy() bool {
	return c.xclient == nil && (c.Trusted() || !c.named && contains(c.cfg.ProxySources, c.peer.Addr()))
}

// Named reports whether a proxy has named the client's address, with PROXY or XCLIENT. A
// proxy that may use XCLIENT and is named itself does not count.
func (c *identity) Named() bool {
	if c.xclient != nil && c.xclient.Addr.Addr() != c.peer.Addr() {
		return c.xclient.Addr.Addr().IsValid()
	}
	return c.named && !c.Trusted()
}

// proxied is an XCLIENT or XFORWARD.
type proxied struct {
	c   *Conn
	cmd Command
}

// check returns the reply to an XCLIENT or XFORWARD that is not allowed.
func (p proxied) check() Reply {
	c, cmd := p.c, p.cmd
	switch {
	case len(c.cfg.TrustedProxies) == 0:
		return NewReply(502, "5.5.1 "+cmd.Verb+" is not offered")
	case !c.Trusted():
		return NewReply(550, "5.7.0 "+cmd.Verb+" is not allowed from here")
	case c.inMail:
		return NewReply(503, "5.5.1 "+cmd.Verb+" is not allowed inside a mail transaction")
	}
	return Reply{}
}

// doXCLIENT carries out XCLIENT. The session begins again. With ADDR all earlier
// attributes are forgotten.
func (p proxied) doXCLIENT() {
	c := p.c
	client := Client{Addr: c.peer, Local: c.local}
	if c.xclient != nil {
		client = *c.xclient
	}
	if !p.set(&client, Client{Local: c.local}, xclientAttributes) {
		return
	}
	c.forgetClient()
	c.xclient = &client
	c.errors, c.refusals, c.idle = 0, 0, 0
	reply := c.refusal()
	if reply.IsZero() {
		reply = c.greeting()
	}
	c.out = reply.Append(c.out)
}

// doXFORWARD carries out XFORWARD. Several commands add up until the end of a
// transaction. With ADDR all earlier attributes are forgotten.
func (p proxied) doXFORWARD() {
	c := p.c
	client := c.Forwarded()
	if p.set(&client, Client{Proto: client.Proto}, xforwardAttributes) {
		c.xforward, c.mailSeen = &client, false
		c.out = NewReply(250, "2.0.0 Ok").Append(c.out)
	}
}

// set sets the attributes of XCLIENT or XFORWARD, those in allowed. With
// ADDR it begins with other. If the command is not allowed or invalid, it refuses the
// command and returns false.
func (p proxied) set(client *Client, other Client, allowed string) bool {
	c, cmd := p.c, p.cmd
	if reply := p.check(); !reply.IsZero() {
		c.refuseVerb(cmd, reply)
		return false
	}
	if hasAttribute(cmd.rest, "ADDR") {
		*client = other
	}
	if !client.setAll(cmd.rest, allowed) {
		c.refuseVerb(cmd, NewReply(501, "5.5.4 Bad "+cmd.Verb+" attribute"))
		return false
	}
	return true
}

// dropForwarded drops the attributes of XFORWARD after their transaction.
func (c *identity) dropForwarded(cmd Command, inMail bool) {
	switch cmd.Verb {
	case "RSET", "EHLO", "HELO":
		c.xforward = nil
	}
	if c.mailSeen && !inMail {
		c.xforward = nil
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

// setAll sets the attributes of XCLIENT or XFORWARD, and reports whether all are valid
// and in allowed.
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

// set sets one attribute. Values that are unavailable become unknown.
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

// setAddr sets an IPv4 address, or an IPv6 address after "IPV6:".
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

func isHostName(s string) bool { return all(s, isDomainByte) && validDomain(s) }

// Client is the client of a connection: the peer, or the one that a trusted proxy
// names with the PROXY protocol or XCLIENT.
type Client struct {
	Addr  netip.AddrPort // the zero AddrPort if unknown
	Local netip.AddrPort // the address that it connected to
	Name  string         // its name in DNS, if a proxy has sent it
	Helo  string         // its name in HELO or EHLO
	Proto string         // "SMTP" or "ESMTP"
	Login string         // as whom a proxy has authenticated it, or ""
	ID    string         // the message's id at the proxy (XFORWARD's IDENT)
}
