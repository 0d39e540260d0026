package nexthop

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

var errStop = errors.New("stop it")

// interruptions are the ways to interrupt a call, which is running in another
// goroutine: the context of the call ends, or its transaction is aborted.
var interruptions = map[string]struct {
	want      error
	interrupt func(cancel context.CancelCauseFunc, tx Transaction)
}{
	"context": {errStop, func(cancel context.CancelCauseFunc, _ Transaction) { cancel(errStop) }},
	"abort":   {ErrAborted, func(_ context.CancelCauseFunc, tx Transaction) { tx.Abort() }},
}

func TestInterruptConnect(t *testing.T) {
	for name, c := range interruptions {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			dialing := make(chan struct{})
			hop := newSMTP(t, SMTPConfig{Addr: "192.0.2.1:25", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
				close(dialing)
				<-ctx.Done()
				return nil, ctx.Err()
			}})
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			tx := hop.Begin(Envelope{})
			go func() {
				<-dialing
				c.interrupt(cancel, tx)
			}()
			if _, err := tx.Rcpt(ctx, "b@example.net", nil); !errors.Is(err, c.want) {
				t.Errorf("%v", err)
			}
			tx.Abort()
		})
	}
}

// TestInterruptWait interrupts the wait for a silent next hop at each step.
func TestInterruptWait(t *testing.T) {
	for _, silent := range []string{"GREETING", "EHLO", "MAIL", "RCPT", "DATA"} {
		for name, c := range interruptions {
			t.Run(silent+"/"+name, func(t *testing.T) {
				checkGoroutines(t)
				asked := make(chan struct{})
				sink := smtptest.NewSink(t, smtptest.Config{Answer: func(command smtptest.Command) string {
					if command.Verb() != silent {
						return ""
					}
					close(asked)
					return smtptest.Silence
				}})
				hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				tx := hop.Begin(Envelope{})
				go func() {
					<-asked
					c.interrupt(cancel, tx)
				}()
				_, err := tx.Rcpt(ctx, "b@example.net", nil)
				if silent == "DATA" && err == nil {
					_, _, err = tx.Data(ctx, Stuffed)
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%v", err)
				}
				tx.Abort()
				sink.WaitConns(0)
			})
		}
	}
}

// TestInterruptWrite interrupts a Write that the next hop does not read.
func TestInterruptWrite(t *testing.T) {
	checkGoroutines(t)
	stalled := make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var server sync.WaitGroup
	server.Go(func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.Write([]byte("220 x\r\n"))
		for _, reply := range []string{"250 x\r\n", "250 x\r\n", "250 x\r\n", "354 x\r\n"} {
			c.Read(make([]byte, 1000))
			c.Write([]byte(reply))
		}
		<-stalled
	})
	hop := newSMTP(t, SMTPConfig{Addr: listener.Addr().String(), Reuse: true})
	tx, m, err := begin(hop, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan struct{})
	go func() {
		<-first
		tx.Abort()
	}()
	piece := make([]byte, 1<<20)
	for once := sync.OnceFunc(func() { close(first) }); err == nil; once() {
		_, err = m.Write(piece)
	}
	if !errors.Is(err, ErrAborted) {
		t.Errorf("%v", err)
	}
	close(stalled)
	server.Wait()
}

// TestNothingInterruptsTheEnd: once the dot is sent, neither context nor Abort
// nor Close keep the reply from being waited for.
func TestNothingInterruptsTheEnd(t *testing.T) {
	interruptions := map[string]func(cancel context.CancelFunc, tx Transaction, hop *SMTP){
		"context": func(cancel context.CancelFunc, _ Transaction, _ *SMTP) { cancel() },
		"abort":   func(_ context.CancelFunc, tx Transaction, _ *SMTP) { tx.Abort() },
		"close":   func(_ context.CancelFunc, _ Transaction, hop *SMTP) { hop.Close() },
	}
	for name, interrupt := range interruptions {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			ended, answer := make(chan struct{}), make(chan struct{})
			sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
				if c.Line == "." {
					close(ended)
					<-answer
				}
				return ""
			}})
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
			tx, m, err := begin(hop, "a@example.com")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				<-ended
				interrupt(cancel, tx, hop)
				close(answer)
			}()
			if reply, err := m.Commit(ctx); err != nil || reply.Code != 250 {
				t.Errorf("%v, %v", reply, err)
			}
			tx.Abort()
			m.Abort()
			if n := len(sink.Messages()); n != 1 {
				t.Errorf("%d messages", n)
			}
		})
	}
}

// TestCancelledBeforeTheEnd: a context that has ended before Commit sends no
// dot.
func TestCancelledBeforeTheEnd(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	_, m, err := begin(hop, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStop)
	if _, err := m.Commit(ctx); !errors.Is(err, errStop) || errors.Is(err, ErrReplyLost) {
		t.Errorf("%v", err)
	}
	sink.WaitConns(0)
	if len(sink.Messages()) != 0 || len(sink.Undelivered()) != 1 {
		t.Error("the message ended")
	}
}

// TestContextPerCall: the end of a context matters to the calls that were given
// it, and to no others before or after them.
func TestContextPerCall(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	tx := hop.Begin(Envelope{From: "a@example.com"})
	call := func(do func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if err := do(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		call(func(ctx context.Context) error {
			_, err := tx.Rcpt(ctx, "b@example.net", nil)
			return err
		})
	}
	var m Message
	call(func(ctx context.Context) (err error) {
		m, _, err = tx.Data(ctx, Stuffed)
		return err
	})
	if _, err := m.Write([]byte("a body\r\n")); err != nil {
		t.Fatal(err)
	}
	call(func(ctx context.Context) error {
		reply, err := m.Commit(ctx)
		if err == nil && !reply.Positive() {
			t.Error(reply)
		}
		return err
	})
}

// TestRefusedWhileWriting: the next hop refuses a message in its middle, and
// closes the connection. What it said is in the error.
func TestRefusedWhileWriting(t *testing.T) {
	for _, end := range []string{smtptest.Close, smtptest.Reset} {
		t.Run(end, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{
				Body:       &smtptest.BodyFault{After: 1 << 20, Reply: "552 5.3.4 too large\n" + end},
				DropBodies: true,
			})
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
			_, m, err := begin(hop, "a@example.com")
			if err != nil {
				t.Fatal(err)
			}
			line := append(bytes.Repeat([]byte("x"), 998), "\r\n"...)
			for err == nil {
				_, err = m.Write(line)
			}
			var early *ReplyError
			if !errors.As(err, &early) || early.Reply.String() != "552 5.3.4 too large" {
				t.Errorf("%v", err)
			}
			if _, again := m.Write(line); again != err {
				t.Errorf("second write: %v", again)
			}
			if _, again := m.Commit(context.Background()); again != err {
				t.Errorf("commit: %v", again)
			}
			m.Abort()
			if len(sink.Messages()) != 0 {
				t.Error("delivered")
			}
		})
	}
}

// shortConn takes a number of bytes and then fails.
type shortConn struct {
	net.Conn
	left *int // -1: no limit
}

func (c shortConn) Write(p []byte) (int, error) {
	if *c.left < 0 || len(p) <= *c.left {
		return c.Conn.Write(p)
	}
	n, _ := c.Conn.Write(p[:*c.left])
	c.Conn.Close()
	return n, net.ErrClosed
}

// TestDotCutOff fails the write that holds the dot at each of its bytes: the
// outcome is unknown exactly when one of the dot's went out.
func TestDotCutOff(t *testing.T) {
	sink := smtptest.NewSink(t)
	const body = "abc\r\n"
	for taken := range len(body) + len(finalDot) {
		left := -1
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return shortConn{c, &left}, err
		}})
		_, m, err := begin(hop, "a@example.com")
		if err != nil {
			t.Fatal(err)
		}
		m.Write([]byte(body))
		left = taken
		reply, err := m.Commit(context.Background())
		if err == nil || errors.Is(err, ErrReplyLost) != (taken > len(body)) {
			t.Errorf("%d bytes taken: %v, %v", taken, reply, err)
		}
	}
	sink.WaitConns(0)
	if len(sink.Messages()) != 0 {
		t.Error("delivered")
	}
}

// TestWriteTimeout: a next hop that stops reading is given up.
func TestWriteTimeout(t *testing.T) {
	script := smtptest.NewScript(t, smtptest.Parse("", `
S 220 x
C EHLO gate.example
S 250 x
C MAIL FROM:<a@example.com>
S 250 x
C RCPT TO:<b@example.net>
S 250 x
C DATA
S 354 x
HOLD
S [reset]
`).Steps)
	hop := newSMTP(t, SMTPConfig{Addr: script.Addr(), Timeouts: Timeouts{Write: 30 * time.Millisecond}, Dial: dialPatient("DATA")})
	_, m, err := begin(hop, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 1<<20)
	for err == nil {
		_, err = m.Write(piece)
	}
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("%v", err)
	}
	m.Abort()
	script.Continue()
}

// TestMisuse: calls in the wrong order are errors, and end the transaction.
func TestMisuse(t *testing.T) {
	sink := smtptest.NewSink(t)
	box, err := NewMaildir(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, target := range []Target{newSMTP(t, SMTPConfig{Addr: sink.Addr()}), box} {
		tx := target.Begin(Envelope{})
		if m, reply, err := tx.Data(ctx, Stuffed); m != nil || err == nil {
			t.Errorf("%s: DATA without a recipient: %v", target, reply)
		}
		tx, m, err := begin(target, "")
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := tx.Rcpt(ctx, "c@example.net", nil); err == nil {
			t.Errorf("%s: RCPT after DATA: %v", target, reply)
		}
		if reply, err := m.Commit(ctx); err == nil {
			t.Errorf("%s: commit after an error: %v", target, reply)
		}
		_, m, err = begin(target, "")
		if err != nil {
			t.Fatal(err)
		}
		var reply wire.Reply
		if reply, err = m.Commit(ctx); err != nil || !reply.Positive() {
			t.Errorf("%s: %v, %v", target, reply, err)
		}
		if _, err := m.Commit(ctx); err == nil {
			t.Errorf("%s: second commit", target)
		}
		if _, err := m.Write([]byte("x")); err == nil {
			t.Errorf("%s: write after the end", target)
		}
	}
}
