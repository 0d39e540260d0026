package wire_test

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
)

// TestDialogues plays every file of testdata/dialogues against a wire.Conn below
// go-smtp's server, whose session accepts all mail. Package smtptest describes
// the format and what the client and the server say. The other lines of the
// set-up are:
//
//	next KEYWORD…             what the next hop offers too, with parameters after '='; "next -" for nothing
//	limit N, recipients N, errors N
//	tls offered|required|implicit
//	auth [required]           Config.Auth is the test's: see authenticate; Config.AuthRequired
//	trusted PREFIX, proxy PREFIX
//	delay DURATION, reject    the greeting delay; the server refuses clients that do not wait for it
//	refuse ADDRESS REPLY      Config.Connected refuses this client
//	erred N REPLY             Config.Erred returns this reply at the Nth error
//
// The other steps are:
//
//	event TEXT                a call of the session or of a hook, in order; "event -" for none
//	TLS+ BYTES                the client begins TLS and sends bytes in the packet that ends its handshake
func TestDialogues(t *testing.T) { smtptest.Play(t, playDialogue) }

func playDialogue(t *testing.T, file *smtptest.Dialogue) {
	gate := newTestGate(t)
	file.Each(t, file.SetUp, gate.setUp)
	gate.start(t)
	client := gate.dial(t)
	var want []string
	checked := false // the file lists the events
	file.Each(t, file.Steps, func(l smtptest.Line) error {
		switch l.Verb {
		case "TLS+":
			return startTLSAndSend(client, smtptest.Expand(l.Text))
		case "event":
			checked = true
			if l.Text != "-" {
				want = append(want, l.Text)
			}
			return nil
		}
		return client.Play(l)
	})
	client.Conn.Close()
	gate.stop(t)
	if got := gate.recorded(); checked && !slices.EqualFunc(want, got, smtptest.Match) {
		t.Errorf("%s: events\n\t%s\nwant\n\t%s", file.File, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// startTLSAndSend begins TLS as a client, and sends text in the packet that ends
// the handshake.
func startTLSAndSend(p *smtptest.Peer, text string) error {
	late := &lateConn{Conn: p.Conn}
	c := tls.Client(late, &tls.Config{RootCAs: smtptest.Roots(), ServerName: smtptest.ServerName, MinVersion: tls.VersionTLS13})
	err := c.Handshake()
	if err == nil {
		_, err = io.WriteString(c, text)
	}
	if err == nil {
		_, err = late.Conn.Write(late.held)
	}
	late.open = true
	p.Use(c)
	return err
}

// lateConn holds back what is written after the first message, until it is open.
type lateConn struct {
	net.Conn
	hello, open bool
	held        []byte
}

func (l *lateConn) Write(p []byte) (int, error) {
	if l.open || !l.hello {
		l.hello = true
		return l.Conn.Write(p)
	}
	l.held = append(l.held, p...)
	return len(p), nil
}
