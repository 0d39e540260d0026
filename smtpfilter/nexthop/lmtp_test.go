package nexthop

import (
	"context"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

func TestMergeReplies(t *testing.T) {
	const mixed = "451 4.3.0 Delivered to %s recipients, send it again for all of them"
	for _, c := range []struct {
		replies, want string
	}{
		{"250 a", "250 a"},
		{"250 a,251 b,250 c", "250 a"},
		{"550 a,552 b", "550 a"},
		{"452 a,451 b", "452 a"},
		{"421 a", "421 a"},
		{"250 a,550 b", strings.Replace(mixed, "%s", "1 of 2", 1)},
		{"550 a,250 b", strings.Replace(mixed, "%s", "1 of 2", 1)},
		{"550 a,450 b", strings.Replace(mixed, "%s", "0 of 2", 1)},
		{"250 a,421 b,421 b,421 b", strings.Replace(mixed, "%s", "1 of 4", 1)},
		{"421 a,421 a", "421 a"},
	} {
		var replies []wire.Reply
		for text := range strings.SplitSeq(c.replies, ",") {
			var reply wire.Reply
			if _, err := reply.AppendLine([]byte(text)); err != nil {
				t.Fatal(err)
			}
			replies = append(replies, reply)
		}
		if got := MergeReplies(replies); got.String() != c.want {
			t.Errorf("%s: %s", c.replies, got)
		}
	}
}

// TestUnixSocket delivers over one, and keeps the connection.
func TestUnixSocket(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Unix: true, Replies: map[string]string{
		". RCPT TO:<c@example.net>": "450 4.2.1 later",
	}})
	target, err := New("lmtp+unix:"+sink.Addr(), SMTPConfig{Reuse: true})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ctx := context.Background()
	for _, c := range []struct{ to, want string }{
		{"b@example.net", "250 2.0.0 Ok: queued"},
		{"b@example.net c@example.net", "451 4.3.0 Delivered to 1 of 2 recipients, send it again for all of them"},
	} {
		tx := target.Begin(Envelope{From: "a@example.com"})
		for to := range strings.FieldsSeq(c.to) {
			if reply, err := tx.Rcpt(ctx, to, nil); err != nil || !reply.Positive() {
				t.Fatal(reply, err)
			}
		}
		m, _, err := tx.Data(ctx, Stuffed)
		if err != nil {
			t.Fatal(err)
		}
		m.Write([]byte("x: y\r\n"))
		if reply, err := m.Commit(ctx); err != nil || reply.String() != c.want {
			t.Errorf("%v, %v", reply, err)
		}
	}
	if v := sink.Violations(); v != nil {
		t.Error(v)
	}
	if n := len(sink.Messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
	for _, m := range sink.Messages() {
		if m.Hello != "LHLO localhost" || string(m.Body) != "x: y\r\n" {
			t.Errorf("%q %q", m.Hello, m.Body)
		}
	}
}

// TestGroupEachReply has the replies for each recipient from the member that took the
// message.
func TestGroupEachReply(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Replies: map[string]string{
		". RCPT TO:<c@example.net>": "552 5.2.2 full",
	}})
	var members []Target
	for _, addr := range []string{smtptest.Unreachable(t), sink.Addr()} {
		m, err := New("lmtp://"+addr, SMTPConfig{ProbeInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	g, err := NewGroup(members, GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx := context.Background()
	tx := g.Begin(Envelope{From: "a@example.com"})
	for _, to := range []string{"b@example.net", "c@example.net"} {
		if reply, err := tx.Rcpt(ctx, to, nil); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
	}
	m, _, err := tx.Data(ctx, Stuffed)
	if err != nil {
		t.Fatal(err)
	}
	m.Write([]byte("x: y\r\n"))
	if reply, err := m.Commit(ctx); err != nil || reply.Code != 451 {
		t.Errorf("%v, %v", reply, err)
	}
	each := m.(EachReply).Replies()
	if len(each) != 2 || each[0].Code != 250 || each[1].Code != 552 {
		t.Errorf("%v", each)
	}
}
