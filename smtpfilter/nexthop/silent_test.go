package nexthop

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// wedging is a server that stops at a command, with all that it does: it takes
// connections, and says nothing any more.
type wedging struct {
	place   string // the command
	stopped atomic.Bool
}

func (w *wedging) answer(c smtptest.Command) string {
	if c.Line == w.place || c.Verb() == w.place {
		w.stopped.Store(true)
	}
	if w.stopped.Load() {
		return smtptest.Silence
	}
	return ""
}

// hasty are timeouts that detect a silent server soon, and otherwise wait for longer than
// a test may run.
var hasty = Timeouts{Suspect: 20 * time.Millisecond, Greeting: 100 * time.Millisecond, Mail: time.Hour, Rcpt: time.Hour, Data: time.Hour}

// TestSilentServer stops a server: the waits for it end, and it is not up.
func TestSilentServer(t *testing.T) {
	for _, place := range []string{"MAIL", "RCPT", "RCPT TO:<c@example.net>", "DATA"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w := &wedging{place: place}
			sink := smtptest.NewSink(t, smtptest.Config{Answer: w.answer})
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, Timeouts: hasty})
			tx := hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
			defer tx.Abort()
			ctx := context.Background()
			_, err := tx.Rcpt(ctx, "b@example.net", nil)
			if err == nil {
				_, err = tx.Rcpt(ctx, "c@example.net", nil)
			}
			if err == nil {
				_, _, err = tx.Data(ctx, Stuffed)
			}
			if !errors.Is(err, errSilent) {
				t.Errorf("error %v", err)
			}
			if stateOf(hop).Up && strings.HasPrefix(place, "MAIL") {
				t.Error("it is up")
			}
		})
	}
}

// TestSilentKept: the server stops while connections to it are kept. Clients of a group
// have their mail delivered elsewhere.
func TestSilentKept(t *testing.T) {
	w := &wedging{place: "NOOP"}
	first := smtptest.NewSink(t, smtptest.Config{Answer: w.answer})
	second := smtptest.NewSink(t)
	a := newSMTP(t, SMTPConfig{Addr: first.Addr(), Reuse: true, Timeouts: hasty})
	b := newSMTP(t, SMTPConfig{Addr: second.Addr(), Reuse: true})
	g, log := testGroup(t, GroupConfig{clock: newTestClock().clock()}, a, b)
	for i := range 4 {
		if reply, err := deliver(g, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
		if i == 0 {
			w.stopped.Store(true)
		}
	}
	if n, m := len(first.Messages()), len(second.Messages()); n != 1 || m != 3 {
		t.Errorf("%d messages and %d", n, m)
	}
	if g.members[0].up() || !strings.Contains(log.String(), errSilent.Error()) {
		t.Errorf("the log: %s", log)
	}
}

// TestSlowReply: a server that is there may take its time for a recipient. Its reply is
// given here only when it was asked over another connection whether it is there.
func TestSlowReply(t *testing.T) {
	asked := make(chan struct{})
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		switch {
		case c.Conn == 2 && c.Verb() == "EHLO":
			close(asked)
		case c.Verb() == "RCPT":
			<-asked
		}
		return ""
	}})
	timeouts := hasty
	timeouts.Greeting = time.Hour
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, Timeouts: timeouts})
	if reply, err := deliver(hop, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
		t.Fatal(reply, err)
	}
	if n := sink.Conns(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// TestTooSlowReply: a server that is there, and takes too long over one client's
// recipient, is not down for all others; that recipient goes elsewhere.
func TestTooSlowReply(t *testing.T) {
	first := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"RCPT": smtptest.Silence}})
	second := smtptest.NewSink(t)
	timeouts := hasty
	timeouts.Greeting, timeouts.Rcpt = time.Hour, 100*time.Millisecond
	a := newSMTP(t, SMTPConfig{Addr: first.Addr(), Timeouts: timeouts})
	b := newSMTP(t, SMTPConfig{Addr: second.Addr()})
	g, log := testGroup(t, GroupConfig{clock: newTestClock().clock()}, a, b)
	if reply, err := deliver(g, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
		t.Fatal(reply, err)
	}
	if !g.members[0].up() {
		t.Errorf("taken down: %s", log)
	}
	if s := stateOf(a); s.Known && !s.Up {
		t.Error("no mail can pass to it")
	}
}

// TestSilentAfterTheDot checks that the wait for the reply to a message, which may take 10
// minutes, has no check whether the server is alive.
func TestSilentAfterTheDot(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		switch {
		case c.Conn > 1:
			return smtptest.Silence
		case c.Line == ".":
			time.Sleep(20 * hasty.Suspect) // a server that is slow
		}
		return ""
	}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, Timeouts: hasty})
	if reply, err := deliver(hop, "a@example.com", []byte("x: y\r\n"), whole); err != nil || !reply.Positive() {
		t.Fatal(reply, err)
	}
	if n := sink.Conns(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestCheckIsShared: many who wait for one server ask it once.
func TestCheckIsShared(t *testing.T) {
	sink := smtptest.NewSink(t)
	timeouts := hasty
	timeouts.Suspect = time.Hour
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Timeouts: timeouts})
	for range 5 {
		if err := hop.checkAlive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := sink.Conns(); n != 1 {
		t.Errorf("%d connections", n)
	}
	hop.Close()
	sink.Close()
	hop.aliveCheck.ended = time.Unix(0, 0)
	if err := hop.checkAlive(t.Context()); err != nil {
		t.Errorf("once closed: %v", err)
	}
}

// TestSilentLater stops a server after the first check.
func TestSilentLater(t *testing.T) {
	w := &wedging{place: "QUIT"} // of the connection on which it was asked
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		if c.Verb() == "RCPT" {
			return smtptest.Silence
		}
		return w.answer(c)
	}})
	defer sink.CloseConns() // or QUIT would be waited for
	timeouts := hasty
	timeouts.Greeting = 3 * time.Second
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Timeouts: timeouts})
	tx := hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
	defer tx.Abort()
	if _, err := tx.Rcpt(t.Context(), "b@example.net", nil); !errors.Is(err, errSilent) {
		t.Errorf("error %v", err)
	}
	if !w.stopped.Load() {
		t.Error("it was not asked before it stopped")
	}
}

// TestEndlessLine: a server whose reply has no end is given up after the size of a line, not
// when memory or the timeout is over.
func TestEndlessLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.(*net.TCPConn).SetWriteBuffer(64 << 10)
		total, piece := 0, bytes.Repeat([]byte("x"), 1<<10)
		for err == nil && total < 8<<20 {
			var n int
			n, err = c.Write(piece)
			total += n
		}
		sent <- total
	}()
	hop := newSMTP(t, SMTPConfig{Addr: l.Addr().String()})
	tx := hop.Begin(Envelope{Client: testClient, From: "a@example.com"})
	defer tx.Abort()
	if _, err := tx.Rcpt(context.Background(), "b@example.net", nil); !errors.Is(err, wire.ErrBadReply) {
		t.Errorf("error %v", err)
	}
	if n := <-sent; n >= 8<<20 {
		t.Errorf("%d bytes of a line were read", n)
	}
}
