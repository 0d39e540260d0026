package wire

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"time"
)

// handshakeTimeout limits a TLS handshake, unless CommandTimeout is shorter.
const handshakeTimeout = time.Minute

// modernTLS returns cfg without the versions before 1.2 (RFC 8996).
func modernTLS(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	return cfg
}

// TLS returns the state of TLS, or nil without TLS.
func (c *pipe) TLS() *tls.ConnectionState {
	if c.tls == nil {
		return nil
	}
	state := c.tls.ConnectionState()
	return &state
}

// offersTLS reports whether STARTTLS is offered.
func (c *Conn) offersTLS() bool {
	return c.cfg.TLS != nil && c.cfg.TLSMode != TLSImplicit && c.tls == nil
}

// startTLS carries out STARTTLS (RFC 3207).
func (c *Conn) startTLS(cmd Command) {
	switch {
	case c.tls != nil:
		c.refuseVerb(cmd, NewReply(503, "5.5.1 TLS is in use already"))
	case !c.offersTLS():
		c.refuseVerb(cmd, NewReply(502, "5.5.1 STARTTLS is not offered"))
	case cmd.rest != "":
		c.refuseVerb(cmd, NewReply(501, "5.5.4 STARTTLS takes no argument"))
	case c.inMail:
		c.refuseVerb(cmd, NewReply(503, "5.5.1 STARTTLS is not allowed inside a mail transaction"))
	case len(c.in.bytes()) > 0:
		// Whoever sent this in plain text wants it to pass for the client's bytes
		// inside TLS. An honest client waits for the reply.
		c.notice("pipelines after STARTTLS")
		c.sayLast(NewReply(554, "5.5.0 Nothing may follow STARTTLS before its reply"))
	default:
		c.out = NewReply(220, "2.0.0 Ready to start TLS").Append(c.out)
		if c.flush() != nil || !c.handshake() {
			c.last = true
			return
		}
		c.forgetClient() // RFC 3207, section 4.2
	}
}

// handshake begins TLS. If it fails the connection ends without another reply.
func (c *Conn) handshake() bool {
	raw := c.Conn
	if early := c.in.bytes(); len(early) > 0 {
		// They came in one packet with the PROXY header.
		raw = &prefixed{c.Conn, io.MultiReader(bytes.NewReader(bytes.Clone(early)), c.Conn)}
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
			c.notice("fails the TLS handshake: " + printableText(err.Error(), maxReplyText, false))
		}
		c.ended, c.last = true, true
		return false
	}
	c.tls, c.stream = t, t
	return true
}

// forgetClient drops the results of the client's commands. It must send EHLO or HELO
// again before mail: see checkSequence. That also ends the transaction of go-smtp's
// session.
func (c *Conn) forgetClient() {
	c.helo, c.offers = Command{}, offers{}
	c.xforward, c.authed = nil, false
	c.endTransaction()
}

// closeNotify ends TLS properly, so that the client knows that nothing was cut off
// (RFC 8446, section 6.1).
func (c *pipe) closeNotify() {
	if c.tls != nil && !c.unwritable {
		c.tls.CloseWrite() // with its own deadline of 5 seconds
	}
}

// prefixed is a connection of which some bytes were read already.
type prefixed struct {
	net.Conn
	in io.Reader
}

func (p *prefixed) Read(b []byte) (int, error) { return p.in.Read(b) }
