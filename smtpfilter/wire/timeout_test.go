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
	g := newPlayed(t)
	g.cfg.CommandTimeout = 500 * time.Millisecond
	g.start(t)
	d := &dialogue{t: t, gate: g}
	d.use(g.dial(t))
	d.play("S 220 *")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		d.play("S 421 4.4.2 *")
	}()
	for {
		select {
		case <-answered:
			return
		case <-time.After(time.Millisecond):
			d.send("x") // fails once the connection is closed
		}
	}
}

// patiently tries something with a short time limit, and with longer ones until it
// comes out as it should: a limit may have been over before a client on a slow
// machine came to what it was meant for.
func patiently(t *testing.T, limit time.Duration, try func(limit time.Duration) error) {
	t.Helper()
	err := try(limit)
	for err != nil && limit < playLimit/5 {
		limit *= 5
		err = try(limit)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestSilence lets a client fall silent where TLS or a PROXY header is due, or
// within AUTH.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setUp []string
		steps []string
	}{
		{"STARTTLS", []string{"tls offered"}, []string{"S 220 *", "C STARTTLS", "S 220 *", "X"}},
		{"implicit TLS", []string{"tls implicit"}, []string{"X"}},
		{"PROXY", []string{"proxy 127.0.0.0/8"}, []string{"R PROXY", "X"}},
		{"AUTH", []string{"tls implicit", "auth", "next AUTH=PLAIN"}, []string{
			"TLS", "S 220 *", "C EHLO client.example", "E PIPELINING,CHUNKING,AUTH PLAIN,SIZE",
			"C AUTH PLAIN", "S 334 *", "S 421 4.4.2 *", "X"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			patiently(t, 200*time.Millisecond, func(limit time.Duration) error {
				g := newPlayed(t)
				g.cfg.CommandTimeout = limit
				for _, line := range tt.setUp {
					if err := g.setUp(line); err != nil {
						t.Fatal(err)
					}
				}
				g.start(t)
				d := &dialogue{t: t, gate: g}
				d.use(g.dial(t))
				return d.try(tt.steps...)
			})
		})
	}
}

// TestCloseNotify closes TLS in order, so that the client can tell the end from
// a cut.
func TestCloseNotify(t *testing.T) {
	for _, last := range []string{"QUIT", "NOOP \x00"} {
		g := newPlayed(t)
		if err := g.setUp("tls implicit"); err != nil {
			t.Fatal(err)
		}
		g.start(t)
		d := &dialogue{t: t, gate: g}
		d.use(g.dial(t))
		d.play("TLS", "S 220 *", "C "+last)
		if reply, err := io.ReadAll(d.in); err != nil || len(reply) == 0 { // io.ErrUnexpectedEOF without close_notify
			t.Errorf("behind %q: %q, %v", last, reply, err)
		}
	}
}

// TestUnreadTLS lets a client take none of its replies: the write times out, and
// the connection ends.
func TestUnreadTLS(t *testing.T) {
	commands := bytes.Repeat([]byte("HELP\r\n"), 10<<10)
	patiently(t, 50*time.Millisecond, func(limit time.Duration) error {
		g := newPlayed(t)
		g.cfg.WriteTimeout, g.cfg.MaxRefusals = limit, 1<<30
		if err := g.setUp("tls implicit"); err != nil {
			t.Fatal(err)
		}
		g.start(t)
		tcp := g.dial(t).(*net.TCPConn)
		tcp.SetReadBuffer(4 << 10)
		d := &dialogue{t: t, gate: g}
		d.use(tcp)
		err := d.try("TLS", "S 220 *")
		if err != nil {
			return err
		}
		for err == nil {
			_, err = d.conn.Write(commands)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the connection goes on")
		}
		return nil
	})
}
