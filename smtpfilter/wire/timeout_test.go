package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// TestDrip sends a command line a byte at a time: the time for the whole of it
// is bounded. Without that bound it would end as a line that is too long, after some
// seconds.
func TestDrip(t *testing.T) {
	g := newTestGate(t)
	g.cfg.CommandTimeout = 500 * time.Millisecond
	g.start(t)
	d := g.dial(t)
	play(t, d, "S 220 *")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		play(t, d, "S 421 4.4.2 *")
	}()
	for {
		select {
		case <-answered:
			return
		case <-time.After(time.Millisecond):
			io.WriteString(d.Conn, "x") // fails once the connection is closed
		}
	}
}

// patiently tries something with a short time limit, and with longer ones until it
// comes out as it should: a limit may have been over before a client on a slow
// machine came to what it was meant for.
func patiently(t *testing.T, limit time.Duration, try func(limit time.Duration) error) {
	t.Helper()
	err := try(limit)
	for err != nil && limit < waitLimit/5 {
		limit *= 5
		err = try(limit)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestSilence lets a client fall silent before TLS or a PROXY header, or within AUTH.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setUp []string
		steps []string
	}{
		{"STARTTLS", []string{"tls offered"}, []string{"S 220 *", "C STARTTLS", "S 220 *", "S [close]"}},
		{"implicit TLS", []string{"tls implicit"}, []string{"S [close]"}},
		{"PROXY", []string{"proxy 127.0.0.0/8"}, []string{"C! PROXY", "S [close]"}},
		{"AUTH", []string{"tls implicit", "auth", "next AUTH=PLAIN"}, []string{
			"TLS", "S 220 *", "C EHLO client.example", "E PIPELINING,CHUNKING,AUTH PLAIN,SIZE",
			"C AUTH PLAIN", "S 334 *", "S 421 4.4.2 *", "S [close]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			patiently(t, 200*time.Millisecond, func(limit time.Duration) error {
				g := newTestGate(t)
				g.cfg.CommandTimeout = limit
				g.mustSetUp(t, tt.setUp...)
				g.start(t)
				d := g.dial(t)
				return d.PlayAll(tt.steps...)
			})
		})
	}
}

// TestCloseNotify closes TLS in order, so that the client can tell the end from
// a cut.
func TestCloseNotify(t *testing.T) {
	for _, last := range []string{"QUIT", "NOOP \x00"} {
		g := newTestGate(t)
		g.mustSetUp(t, "tls implicit")
		g.start(t)
		d := g.dial(t)
		play(t, d, "TLS", "S 220 *", "C "+last)
		if reply, err := io.ReadAll(d.In); err != nil || len(reply) == 0 { // io.ErrUnexpectedEOF without close_notify
			t.Errorf("behind %q: %q, %v", last, reply, err)
		}
	}
}

// TestUnreadTLS lets a client take none of its replies: the write times out, and
// the connection ends.
func TestUnreadTLS(t *testing.T) {
	commands := bytes.Repeat([]byte("HELP\r\n"), 10<<10)
	patiently(t, 50*time.Millisecond, func(limit time.Duration) error {
		g := newTestGate(t)
		g.cfg.WriteTimeout, g.cfg.MaxRefusals = limit, 1<<30
		g.mustSetUp(t, "tls implicit")
		g.start(t)
		d := g.dial(t)
		d.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		err := d.PlayAll("TLS", "S 220 *")
		if err != nil {
			return err
		}
		for err == nil {
			_, err = d.Conn.Write(commands)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the connection goes on")
		}
		return nil
	})
}
