package nexthop

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"spamgate/smtpfilter/wire"
)

// tlsSessions is the number of TLS sessions kept for resumption. They are all with
// one server, which may send several tickets at once.
const tlsSessions = 64

// errTLS is wrapped by the errors of TLS.
var errTLS = errors.New("no TLS")

// newTLS returns the configuration of the TLS library.
func newTLS(config TLSConfig, addr string) (*tls.Config, error) {
	name := config.Name
	if name == "" {
		name, _, _ = net.SplitHostPort(addr)
	}
	verify := config.Mode.verifies()
	if verify && name == "" && len(config.Pins) == 0 {
		return nil, errors.New("TLS needs the certificate's name, or a pin")
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            config.Roots,
		ServerName:         name,
		ClientSessionCache: tls.NewLRUClientSessionCache(tlsSessions),
	}
	if !verify {
		c.InsecureSkipVerify = true
	} else if len(config.Pins) > 0 {
		// The library itself would verify authorities and name.
		c.InsecureSkipVerify = true
		c.VerifyConnection = func(state tls.ConnectionState) error { return checkPins(state, config.Pins) }
	}
	return c, nil
}

// verifies reports whether the server must prove who it is.
func (m TLSMode) verifies() bool { return m == TLSRequired || m == TLSImplicit }

// checkPins verifies a server by its public key.
func checkPins(state tls.ConnectionState, pins [][sha256.Size]byte) error {
	sum := sha256.Sum256(state.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if !slices.Contains(pins, sum) {
		return fmt.Errorf("the certificate's public key %x is not pinned", sum)
	}
	return nil
}

// startTLS begins TLS after EHLO and sends EHLO again: what was offered in plain text
// does not count (RFC 3207, section 4.2). The error wraps errTLS if the next hop
// does not offer TLS, or fails.
func (s *server) startTLS(c *conn) error {
	if !c.offers.Has("STARTTLS") {
		return fmt.Errorf("%w: STARTTLS is not offered", errTLS)
	}
	reply, err := c.ask("STARTTLS", c.timeouts.Hello, 0)
	if errors.Is(err, wire.ErrBadReply) {
		// Bytes after the reply would be taken for bytes inside TLS: somebody has
		// injected them.
		return fmt.Errorf("STARTTLS: %w", err)
	}
	if err != nil {
		return fmt.Errorf("%w: STARTTLS: %w", errTLS, err)
	}
	if reply.Code != codeReady {
		return &ReplyError{Reply: reply, Err: fmt.Errorf("%w: STARTTLS refused", errTLS)}
	}
	if err := c.handshake(s.tls); err != nil {
		return err
	}
	err = c.helloAgain(s.config.Hostname)
	var refused *ReplyError
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, wire.ErrBadReply) {
		// In TLS 1.3 the server's alert comes after our handshake.
		err = fmt.Errorf("%w: %w", errTLS, err)
	}
	return err
}

// codeReady is the code of a greeting, and of the reply to STARTTLS.
const codeReady = 220

// handshake begins TLS on the socket. After an error the connection cannot be used.
func (c *conn) handshake(config *tls.Config) error {
	s := &tlsSocket{Conn: c.socket}
	t := tls.Client(s, config)
	c.socket.SetDeadline(time.Now().Add(c.timeouts.Connect))
	if err := t.Handshake(); err != nil {
		return fmt.Errorf("%w: handshake: %w", errTLS, err)
	}
	c.Conn, c.tls, c.beneath = t, t, s
	c.replies.Reset(t)
	return nil
}

// verified reports whether the server at the other end of TLS is verified.
func (s *server) verified(c *conn) bool {
	if c.tls == nil {
		return false
	}
	if s.config.TLS.Mode.verifies() {
		return true // the handshake has verified it
	}
	state := c.tls.ConnectionState()
	if len(s.config.TLS.Pins) > 0 {
		return checkPins(state, s.config.TLS.Pins) == nil
	}
	others := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		others.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots:         s.tls.RootCAs,
		DNSName:       s.tls.ServerName,
		Intermediates: others,
	})
	return err == nil && s.tls.ServerName != ""
}

// tlsSocket is the socket beneath TLS. Bytes on the socket may be a reply, or belong
// to TLS (servers send session tickets after the handshake): only decrypting them
// tells. So TLS can be made to read what has arrived, without waiting for more.
type tlsSocket struct {
	net.Conn
	state readMode
}

type readMode uint8

const (
	readWaits   readMode = iota // Read waits for bytes
	readArrived                 // Read returns what has arrived
	readHeld                    // Read returns nothing: TLS has only what it holds already
)

// errNothing is a timeout, after which TLS can be read again.
var errNothing = os.ErrDeadlineExceeded

func (s *tlsSocket) Read(p []byte) (int, error) {
	switch s.state {
	case readHeld:
		return 0, errNothing
	case readArrived:
		if pending, err := wire.Pending(s.Conn); err != nil || !pending {
			if err == nil {
				err = errNothing
			}
			return 0, err
		}
	}
	return s.Conn.Read(p)
}

// pending reports whether TLS has anything to read in a mode.
func (c *conn) pending(state readMode) (bool, error) {
	c.beneath.state = state
	defer func() { c.beneath.state = readWaits }()
	_, err := c.replies.Peek(1)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, errNothing) {
		err = nil
	}
	return false, err
}
