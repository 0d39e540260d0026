package smtpfilter

import (
	"net"
	"net/textproto"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
)

// TestShrinkSMTPBuffers wants go-smtp to have the field that shrinkSMTPBuffers needs, and
// to work with the new buffers. If it fails with a new version of go-smtp, idle
// connections cost 8 KiB more.
func TestShrinkSMTPBuffers(t *testing.T) {
	shrunk := make(chan bool, 1)
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		shrunk <- shrinkSMTPBuffers(c, c.Conn())
		return nil, smtp.ErrAuthUnsupported
	}))
	s.Domain = "gate.example"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })

	c, err := textproto.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.ReadResponse(220); err != nil {
		t.Fatal(err)
	}
	c.PrintfLine("EHLO client.example")
	if _, _, err := c.ReadResponse(502); err != nil {
		t.Error(err)
	}
	if !<-shrunk {
		t.Error("go-smtp kept its buffers")
	}
	for _, line := range []string{"NOOP", "NOOP " + strings.Repeat("x", 2*smallBuffer)} {
		c.PrintfLine("%s", line)
		if _, _, err := c.ReadResponse(250); err != nil {
			t.Error(err)
		}
	}
}
