package door

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// echo answers each line with itself. Of a line "part" it waits for the rest of the message.
func echo(c *Conn) {
	for c.Wait(time.Minute) == nil {
		line, err := c.Reader.ReadString('\n')
		if err == nil && line == "part\n" {
			if err = c.SetReadDeadline(time.Now().Add(time.Minute)); err == nil {
				line, err = c.Reader.ReadString('\n')
			}
		}
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, line); err != nil {
			return
		}
	}
}

// start serves a Server at a new address.
func start(t *testing.T, d *Door) (s *Server, dial func() net.Conn, ended chan error) {
	t.Helper()
	return startWith(t, d, echo)
}

// startWith is start with another function for each connection.
func startWith(t *testing.T, d *Door, handle func(*Conn)) (s *Server, dial func() net.Conn, ended chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, ended = NewServer(d, handle), make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	return s, func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}, ended
}

// ask sends a text and returns n bytes of the answer.
func ask(t *testing.T, c net.Conn, text string, n int) string {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, n)
	n, err := io.ReadFull(c, answer)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return string(answer[:n])
}

// TestShutdown: idle connections end at once, and a message that has begun is answered.
func TestShutdown(t *testing.T) {
	d, _, _ := newDoor(t, false)
	s, dial, ended := start(t, d)
	idle, busy := dial(), dial()
	ask(t, idle, "one\n", 4)
	ask(t, busy, "one\n", 4)
	if got := ask(t, busy, "two\npart\n", 4); got != "two\n" {
		t.Fatal(got)
	}
	for { // until the server has read the part
		s.mu.Lock()
		open := 0
		for c := range s.conns {
			c.mu.Lock()
			if !c.waiting {
				open++
			}
			c.mu.Unlock()
		}
		s.mu.Unlock()
		if open == 1 {
			break
		}
	}
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(t.Context()) }()
	if n, err := idle.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the idle connection: %d, %v", n, err)
	}
	if got := ask(t, busy, "rest\n", 5); got != "rest\n" {
		t.Errorf("the message that had begun: %q", got)
	}
	if err := errors.Join(<-done, <-ended); err != nil {
		t.Error(err)
	}
}

// TestShutdownInTime: the end of the context ends what has not ended by itself.
func TestShutdownInTime(t *testing.T) {
	d, _, _ := newDoor(t, false)
	s, dial, ended := start(t, d)
	busy := dial()
	ask(t, busy, "one\npart\n", 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := busy.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// TestMaxConnections: what is too much is closed, logged and counted, and counts no longer
// once it has ended.
func TestMaxConnections(t *testing.T) {
	d, log, meter := newDoor(t, false)
	settings := *d.Settings()
	settings.MaxConnections = 1
	d.Apply(settings)
	s, dial, _ := start(t, d)
	first := dial()
	ask(t, first, "one\n", 4)
	if n, err := dial().Read(make([]byte, 1)); err == nil {
		t.Errorf("a second connection: %d", n)
	}
	first.Close()
	for answer := make([]byte, 4); string(answer) != "one\n"; { // until the end of the first is seen
		c := dial()
		if _, err := io.WriteString(c, "one\n"); err == nil {
			_, _ = io.ReadFull(c, answer) // fails while there is one too many
		}
		c.Close()
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "msg=limited door=milter listener=beside limit=connections of=all value=1 key=max_connections") {
		t.Errorf("the log:\n%s", log)
	}
	if len(meter.all) == 0 || meter.all[0] != "limited max_connections" {
		t.Errorf("counted %q", meter.all)
	}
}

// TestPanic: a panic ends one connection, and the log has it.
func TestPanic(t *testing.T) {
	d, log, _ := newDoor(t, false)
	s, dial, _ := startWith(t, d, func(*Conn) { panic("of the test") })
	if _, err := dial().Read(make([]byte, 1)); err != io.EOF {
		t.Error(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "level=ERROR msg=panic door=milter listener=beside error=\"of the test") {
		t.Errorf("the log:\n%s", log)
	}
}
