package nexthop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"spamgate/internal/smtptest"
)

// TestTLSBytes: messages arrive identical over TLS, all on one connection, whose
// tickets are not taken for replies; another connection resumes the session.
func TestTLSBytes(t *testing.T) {
	checkGoroutines(t)
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"STARTTLS", "PIPELINING", "8BITMIME", "XFORWARD ADDR"}})
	config := SMTPConfig{Addr: sink.Addr(), Reuse: true, TLS: TLSConfig{Mode: TLSRequired, Name: smtptest.ServerName, Roots: smtptest.Roots()}}
	hop := newSMTP(t, config)
	body := bytes.Repeat([]byte("0123456789abcdef\r\n"), 20_000)
	for i := range 20 {
		part := body[:i*i*18*50]
		reply, err := deliver(hop, "a@example.com", part, func(left int) int { return min(left, 30_000) })
		if err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
		got := sink.Messages()
		if m := got[len(got)-1]; !bytes.Equal(m.Body, part) {
			t.Fatalf("%d bytes arrived as %d", len(part), len(m.Body))
		}
	}
	if n := sink.Conns(); n != 1 {
		t.Errorf("%d connections", n)
	}
	flights := make(map[string]int)
	for _, c := range sink.Commands() {
		flights[c.Verb()] = c.Flight
	}
	if flights["XFORWARD"] != flights["RCPT"] {
		t.Errorf("flights %v", flights)
	}
	c, err := hop.connect(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.tls.ConnectionState().DidResume {
		t.Error("the session was not resumed")
	}
	if v := sink.Violations(); v != nil {
		t.Error(v)
	}
}

// TestTLSInterrupt: a handshake that hangs is interrupted.
func TestTLSInterrupt(t *testing.T) {
	checkGoroutines(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	hop := newSMTP(t, SMTPConfig{Addr: listener.Addr().String(), TLS: TLSConfig{Mode: TLSImplicit}})
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	tx := hop.Begin(Envelope{})
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Read(make([]byte, 1)) // the client's hello is there
		cancel(errStop)
		io.Copy(io.Discard, c) // until the client is gone
	}()
	if _, err := tx.Rcpt(ctx, "b@example.net", nil); !errors.Is(err, errStop) {
		t.Error(err)
	}
}
