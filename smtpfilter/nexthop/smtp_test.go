package nexthop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// newSMTP makes a target that ends with the test. It gives no kept connection up
// because a RSET is not answered at once: tests count connections.
func newSMTP(t *testing.T, config SMTPConfig) *SMTP {
	t.Helper()
	config.Hostname = "gate.example"
	config.Timeouts.Quit = time.Minute
	if config.ProbeInterval == 0 {
		config.ProbeInterval = -1
	}
	hop, err := NewSMTP(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hop.Close() })
	return hop
}

// stuff is the plain twin of what the client did: a dot before each dot that
// begins a line.
func stuff(body []byte) []byte {
	body = bytes.ReplaceAll(body, []byte("\r\n."), []byte("\r\n.."))
	if bytes.HasPrefix(body, []byte(".")) {
		body = append([]byte("."), body...)
	}
	return body
}

// begin opens a message to one recipient.
func begin(target Target, from string) (Transaction, Message, error) {
	ctx := context.Background()
	tx := target.Begin(Envelope{Client: testClient, From: from})
	reply, err := tx.Rcpt(ctx, "b@example.net", nil)
	if err == nil && !reply.Positive() {
		err = errors.New(reply.String())
	}
	if err != nil {
		return tx, nil, err
	}
	m, reply, err := tx.Data(ctx, Stuffed)
	if err == nil && m == nil {
		err = errors.New(reply.String())
	}
	return tx, m, err
}

// deliver sends one message, in the pieces that cut gives.
func deliver(target Target, from string, wireBody []byte, cut func(left int) int) (wire.Reply, error) {
	_, m, err := begin(target, from)
	if err != nil {
		return wire.Reply{}, err
	}
	for len(wireBody) > 0 {
		n := cut(len(wireBody))
		if _, err := m.Write(wireBody[:n]); err != nil {
			m.Abort()
			return wire.Reply{}, err
		}
		wireBody = wireBody[n:]
	}
	return m.Commit(context.Background())
}

func whole(left int) int { return left }

// randomBody returns a message of CRLF lines: any bytes but CR, LF and NUL, and many dots
// at the start of lines.
func randomBody(r *rand.Rand, size int) []byte {
	body := make([]byte, 0, size+2)
	for len(body) < size {
		switch r.IntN(8) {
		case 0:
			body = append(body, "\r\n"...)
		case 1:
			body = append(body, '.')
		case 2:
			body = append(body, "\r\n.\r\n"...)
		default:
			c := byte(r.UintN(256))
			if c != 0 && c != '\r' && c != '\n' {
				body = append(body, c)
			}
		}
	}
	if len(body) > 0 {
		body = append(body, "\r\n"...)
	}
	return body
}

func TestBytesArriveIdentical(t *testing.T) {
	dir := t.TempDir()
	sink := smtptest.NewSink(t)
	smtp := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	box, err := NewMaildir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, size := range []int{0, 1, 2, 3, 10, 100, 4096, bodyBuffer - 4, bodyBuffer - 3, bodyBuffer - 2, bodyBuffer - 1, bodyBuffer, bodyBuffer + 1, 300_000} {
		for _, most := range []int{1, 7, 4096, 100_000} {
			if most == 1 && size > 5000 {
				continue
			}
			body := randomBody(r, size)
			cut := func(left int) int { return min(left, 1+r.IntN(most)) }
			reply, err := deliver(smtp, "a@example.com", stuff(body), cut)
			if err != nil || !reply.Positive() {
				t.Fatalf("size %d: %v, %v", size, reply, err)
			}
			got := sink.Messages()
			if m := got[len(got)-1]; !bytes.Equal(m.Body, body) || m.Sum != sha256.Sum256(body) {
				t.Fatalf("body %d of %d bytes arrived with %d, different", i, len(body), m.Size)
			}
			reply, err = deliver(box, "a@example.com", stuff(body), cut)
			if err != nil || !reply.Positive() {
				t.Fatalf("maildir, size %d: %v, %v", size, reply, err)
			}
			if file := takeFile(t, dir, reply); !bytes.Equal(file, append([]byte("Return-Path: <a@example.com>\r\n"), body...)) {
				t.Fatalf("body %d of %d bytes is a different file of %d", i, len(body), len(file))
			}
		}
	}
	if v := sink.Violations(); v != nil {
		t.Error(v)
	}
	if n := sink.Conns(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestRoomForTheDot ends messages that leave the buffer full but for a few
// bytes.
func TestRoomForTheDot(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	for size := bodyBuffer - 5; size <= bodyBuffer+5; size++ {
		body := append(bytes.Repeat([]byte("x"), size-2), "\r\n"...)
		if reply, err := deliver(hop, "a@example.com", body, func(left int) int { return min(left, 40_000) }); err != nil || !reply.Positive() {
			t.Fatalf("size %d: %v, %v", size, reply, err)
		}
		got := sink.Messages()
		if m := got[len(got)-1]; !bytes.Equal(m.Body, body) {
			t.Errorf("size %d: arrived with %d, different", size, m.Size)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	checkGoroutines(t)
	sink := smtptest.NewSink(t)
	for _, reuse := range []bool{false, true} {
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: reuse, MaxIdle: 3})
		before := len(sink.Messages())
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 25 {
					body := fmt.Appendf(nil, "message %d of %d, %v\r\n", i, g, reuse)
					if i%5 == 4 { // a transaction that is dropped
						tx, _, err := begin(hop, "a@example.com")
						if err != nil {
							t.Error(err)
						}
						tx.Abort()
						continue
					}
					reply, err := deliver(hop, "a@example.com", body, whole)
					if err != nil || !reply.Positive() {
						t.Errorf("%v, %v", reply, err)
					}
				}
			})
		}
		group.Wait()
		if err := hop.Close(); err != nil {
			t.Error(err)
		}
		sink.WaitConns(0)
		bodies := make(map[string]bool)
		for _, m := range sink.Messages()[before:] {
			bodies[string(m.Body)] = true
		}
		if n := len(sink.Messages()) - before; n != 160 || len(bodies) != 160 {
			t.Errorf("reuse %v: %d messages, %d different, not 160", reuse, n, len(bodies))
		}
	}
	if v := sink.Violations(); v != nil {
		t.Error(v)
	}
}

// TestOneFlight shows that the first command and the last of the envelope come
// in one packet.
func TestOneFlight(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	if _, err := deliver(hop, "a@example.com", nil, whole); err != nil {
		t.Fatal(err)
	}
	flights := make(map[string]int)
	for _, c := range sink.Commands() {
		flights[c.Verb()] = c.Flight
	}
	if flights["XFORWARD"] != flights["MAIL"] || flights["MAIL"] != flights["RCPT"] || flights["EHLO"] == flights["MAIL"] {
		t.Errorf("flights %v", flights)
	}
}

// TestWornConnection shows that a kept connection on which only refusals happen
// is ended, and that a delivery makes it as good as new.
func TestWornConnection(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"RCPT TO:<no@example.net>": "550 no"}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	refused := func() {
		tx := hop.Begin(Envelope{From: "a@example.com"})
		if reply, err := tx.Rcpt(context.Background(), "no@example.net", nil); err != nil || reply.Code != 550 {
			t.Fatal(reply, err)
		}
		tx.Abort()
		waitFor(t, "the reset", func() bool {
			hop.mu.Lock()
			defer hop.mu.Unlock()
			return len(hop.idle) == 1 || sink.Open() == 0
		})
	}
	for range 3 { // a refusal and a reset each
		refused()
	}
	if _, err := deliver(hop, "a@example.com", nil, whole); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		refused()
	}
	if n := sink.Conns(); n != 1 {
		t.Errorf("%d connections where one serves", n)
	}
	refused()
	if _, err := deliver(hop, "a@example.com", nil, whole); err != nil {
		t.Fatal(err)
	}
	if n := sink.Conns(); n != 2 {
		t.Errorf("%d connections, not 2", n)
	}
}

func TestMaxIdle(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, MaxIdle: 1})
	var open []Message
	for range 3 {
		_, m, err := begin(hop, "a@example.com")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, m)
	}
	for _, m := range open {
		if _, err := m.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	sink.WaitConns(1)
	if _, err := deliver(hop, "a@example.com", nil, whole); err != nil {
		t.Fatal(err)
	}
	if n := sink.Conns(); n != 3 {
		t.Errorf("%d connections for 3 and 1 messages", n)
	}
}

func TestIdleTimeout(t *testing.T) {
	checkGoroutines(t)
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, IdleTimeout: 10 * time.Millisecond})
	if _, err := deliver(hop, "a@example.com", nil, whole); err != nil {
		t.Fatal(err)
	}
	sink.WaitConns(0)
	commands := sink.Commands()
	if last := commands[len(commands)-1]; last.Line != "QUIT" {
		t.Errorf("ended with %q", last.Line)
	}
}

func TestClosed(t *testing.T) {
	checkGoroutines(t)
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true})
	_, m, err := begin(hop, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	dropped, _, err := begin(hop, "c@example.com")
	if err != nil {
		t.Fatal(err)
	}
	hop.Close()
	// What is under way ends as it would have.
	if reply, err := m.Commit(context.Background()); err != nil || !reply.Positive() {
		t.Errorf("commit after close: %v, %v", reply, err)
	}
	dropped.Abort()
	if _, _, err := begin(hop, "a@example.com"); !errors.Is(err, ErrClosed) {
		t.Errorf("begun after close: %v", err)
	}
	sink.WaitConns(0)
	if hop.Close() != nil {
		t.Error("second close")
	}
}

// TestControlBytes shows that nothing of the envelope can end its line.
func TestControlBytes(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	for _, bad := range []string{"a\r\nRSET", "a\n", "a\x00b", "\r"} {
		for _, c := range []struct {
			env    Envelope
			to     string
			params []string
		}{
			{Envelope{From: bad}, "b@example.net", nil},
			{Envelope{From: "a@example.com", Params: []string{bad}}, "b@example.net", nil},
			{Envelope{From: "a@example.com"}, bad, nil},
			{Envelope{From: "a@example.com"}, "b@example.net", []string{bad}},
		} {
			tx := hop.Begin(c.env)
			if _, err := tx.Rcpt(context.Background(), c.to, c.params); err == nil || !strings.Contains(err.Error(), "control bytes") {
				t.Errorf("%q %q %q: %v", c.env.From, c.to, c.params, err)
			}
			tx.Abort()
		}
	}
	for _, c := range sink.Commands() {
		if c.Verb() != "EHLO" {
			t.Errorf("sent %q", c.Line)
		}
	}
}

// TestRelayCheckInterrupted: a next hop that says nothing does not keep a start
// waiting longer than its caller wants.
func TestRelayCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		if c.Verb() != "MAIL" {
			return ""
		}
		cancel(errStop)
		return smtptest.Silence
	}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	if relays, reply, err := hop.CheckRelay(ctx); relays || !errors.Is(err, errStop) {
		t.Errorf("%v, %v, %v", relays, reply, err)
	}
}

// TestCloseLeavesBegunTransactions: a transaction that was begun before Close may
// still connect; one that is begun afterwards fails.
func TestCloseLeavesBegunTransactions(t *testing.T) {
	for name, target := range map[string]func(addr string) Target{
		"server": func(addr string) Target { return newSMTP(t, SMTPConfig{Addr: addr, Reuse: true}) },
		"group": func(addr string) Target {
			g, err := NewGroup([]Target{newSMTP(t, SMTPConfig{Addr: addr, Reuse: true})}, GroupConfig{})
			if err != nil {
				t.Fatal(err)
			}
			return g
		},
	} {
		t.Run(name, func(t *testing.T) {
			sink := smtptest.NewSink(t)
			hop := target(sink.Addr())
			before := hop.Begin(Envelope{From: "a@example.com"})
			hop.Close()
			ctx := context.Background()
			if reply, err := before.Rcpt(ctx, "b@example.net", nil); err != nil || !reply.Positive() {
				t.Fatalf("%v, %v", reply, err)
			}
			m, _, err := before.Data(ctx, Stuffed)
			if err != nil {
				t.Fatal(err)
			}
			m.Write([]byte("x: y\r\n"))
			if reply, err := m.Commit(ctx); err != nil || !reply.Positive() {
				t.Errorf("%v, %v", reply, err)
			}
			after := hop.Begin(Envelope{From: "a@example.com"})
			if _, err := after.Rcpt(ctx, "b@example.net", nil); !errors.Is(err, ErrClosed) {
				t.Errorf("begun after Close: %v", err)
			}
			if got := len(sink.Messages()); got != 1 {
				t.Errorf("%d messages", got)
			}
		})
	}
}

// TestFlush: what was written reaches the next hop before the message ends.
func TestFlush(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Body: &smtptest.BodyFault{After: 4, Reply: smtptest.Close}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
	tx := hop.Begin(Envelope{From: "a@example.com"})
	defer tx.Abort()
	ctx := context.Background()
	if _, err := tx.Rcpt(ctx, "b@example.net", nil); err != nil {
		t.Fatal(err)
	}
	m, _, err := tx.Data(ctx, Stuffed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Write([]byte("x: y\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := m.Flush(); err != nil {
		t.Fatal(err)
	}
	sink.WaitConns(0) // it hangs up behind the fourth byte
}

// TestConnectFails: nobody listens.
func TestConnectFails(t *testing.T) {
	hop := newSMTP(t, SMTPConfig{Addr: smtptest.Unreachable(t)})
	tx := hop.Begin(Envelope{})
	_, err := tx.Rcpt(context.Background(), "b@example.net", nil)
	if err == nil || !strings.Contains(err.Error(), "connect") {
		t.Errorf("%v", err)
	}
	if _, again := tx.Rcpt(context.Background(), "c@example.net", nil); again != err {
		t.Errorf("second recipient: %v", again)
	}
	tx.Abort()
}
