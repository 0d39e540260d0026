package wire

import (
	"bytes"
	"crypto/tls"
	"net"
	"strings"
	"time"
)

// handshakeTimeout is the longest that a TLS handshake may take; CommandTimeout
// holds where it is shorter.
const handshakeTimeout = time.Minute

// modernTLS is cfg without the versions before 1.2 (RFC 8996).
func modernTLS(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	return cfg
}

// TLS is the state of TLS, or nil where the client speaks without.
func (c *Conn) TLS() *tls.ConnectionState {
	if c.tls == nil {
		return nil
	}
	state := c.tls.ConnectionState()
	return &state
}

// offersTLS reports whether STARTTLS may come.
func (c *Conn) offersTLS() bool {
	return c.cfg.TLS != nil && c.cfg.TLSMode != TLSImplicit && c.tls == nil
}

// startTLS carries out STARTTLS (RFC 3207).
func (c *Conn) startTLS(cmd Command) {
	switch {
	case c.tls != nil:
		c.refuseOwn(cmd, NewReply(503, "5.5.1 TLS is in use already"))
	case !c.offersTLS():
		c.refuseOwn(cmd, NewReply(502, "5.5.1 STARTTLS is not offered"))
	case cmd.rest != "":
		c.refuseOwn(cmd, NewReply(501, "5.5.4 STARTTLS takes no argument"))
	case c.inMail:
		c.refuseOwn(cmd, NewReply(503, "5.5.1 STARTTLS is not allowed inside a mail transaction"))
	case len(c.in.bytes()) > 0:
		// Whoever sent this in plain text wants it to be taken for what the
		// client says under TLS. An honest client waits for the reply.
		c.notice("pipelines behind STARTTLS")
		c.sayLast(NewReply(554, "5.5.0 Nothing may follow STARTTLS before its reply"))
	default:
		c.out = NewReply(220, "2.0.0 Ready to start TLS").Append(c.out)
		if c.flush() != nil || !c.handshake() {
			c.last = true
			return
		}
		c.forget() // RFC 3207, section 4.2
	}
}

// handshake begins TLS. When it fails the connection is over: nothing more is
// said or heard in plain text.
func (c *Conn) handshake() bool {
	raw := c.Conn
	if early := c.in.bytes(); len(early) > 0 {
		// They came in one packet with the header of the PROXY protocol.
		raw = &prefixed{Conn: c.Conn, first: bytes.Clone(early)}
		c.in.discard(len(early))
	}
	t := tls.Server(raw, c.cfg.TLS)
	c.Conn.SetDeadline(time.Now().Add(min(c.cfg.CommandTimeout, handshakeTimeout)))
	var err error
	if !c.draining.Load() {
		err = t.Handshake()
	}
	if c.draining.Load() || err != nil {
		if !c.draining.Load() {
			c.notice("fails the TLS handshake: " + visible(err.Error()))
		}
		c.ended, c.last = true, true
		return false
	}
	c.tls, c.stream = t, t
	return true
}

// visible is a text with question marks for what is no graphic ASCII or space: an
// error may repeat what the client has sent.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// forget drops what the client has said so far. Until it introduces itself
// again, no mail can be begun: see outOfTurn. go-smtp learns of it at that
// EHLO, which ends its session's transaction, if any.
func (c *Conn) forget() {
	c.helo, c.offers = Command{}, offers{}
	c.passed, c.authed = nil, false
	c.endTransaction()
}

// closeNotify ends TLS in order, so that the client knows that nothing was cut
// off (RFC 8446, section 6.1).
func (c *Conn) closeNotify() {
	if c.tls != nil && !c.deaf {
		c.tls.CloseWrite() // sets a deadline of its own, of 5 seconds
	}
}

// prefixed is a connection some bytes of which were read already.
type prefixed struct {
	net.Conn
	first []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
