package nexthop

import (
	"fmt"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// TestLearntMessages: a connection to Exim ends after 10 messages, one to another server
// does not, and a number that is set holds for both.
func TestLearntMessages(t *testing.T) {
	for _, c := range []struct {
		greeting    string
		limit       int
		connections int // for 20 messages
	}{
		{"220 mx.example.org ESMTP Exim 4.96 Sun, 22 Nov 2026 09:26:11 +0000", 0, 2},
		{"220 mx.example.org ESMTP Exim 4.96 Sun, 22 Nov 2026 09:26:11 +0000", 5, 4},
		{"220 mx.example.org ESMTP Postfix", 0, 1},
		{"220 mx.example.org ESMTP Postfix", 5, 4},
		{"220 exim.example.org ESMTP Eximious", 0, 1},
	} {
		sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"GREETING": c.greeting}})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, MessagesPerConnection: c.limit})
		for i := range 20 {
			if reply, err := deliver(hop, "a@example.com", fmt.Appendf(nil, "x: %d\r\n", i), whole); err != nil || !reply.Positive() {
				t.Fatal(reply, err)
			}
		}
		if n := sink.Conns(); n != c.connections {
			t.Errorf("%q, %d: %d connections, want %d", c.greeting, c.limit, n, c.connections)
		}
	}
}

// TestExpireNow: a connection is kept for IdleTimeout, and no longer.
func TestExpireNow(t *testing.T) {
	sink := smtptest.NewSink(t)
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, IdleTimeout: time.Hour})
	var open []Message
	for range 2 {
		_, m, err := begin(hop, "a@example.com")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, m)
	}
	for _, m := range open {
		if _, err := m.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	hop.mu.Lock()
	hop.idle[0].idleSince = time.Now().Add(-time.Hour)
	hop.idle[1].idleSince = time.Now().Add(-time.Hour + 10*time.Minute)
	hop.mu.Unlock()
	if next := hop.expireNow(); next <= 0 || next > 10*time.Minute {
		t.Errorf("the next ends in %v, want 10 minutes", next)
	}
	sink.WaitConns(1)
	hop.mu.Lock()
	hop.idle[0].idleSince = time.Now().Add(-time.Hour)
	hop.mu.Unlock()
	if next := hop.expireNow(); next != time.Hour {
		t.Errorf("with none kept: %v", next)
	}
	sink.WaitConns(0)
}
