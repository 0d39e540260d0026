package policyservice

import (
	"testing"

	"spamgate/internal/door"
	"spamgate/smtpfilter/wire"
)

// TestAnswers: what an answer is, and that no text can end it.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		reply wire.Reply
		want  string
	}{
		{wire.NewReply(550, "5.7.1 no"), "550 5.7.1 no"},
		{wire.NewReply(553, "5.1.7 no", "and no"), "553 5.1.7 no and no"},
		{wire.NewReply(451, "4.7.1 later"), "DEFER_IF_PERMIT 4.7.1 later"},
		{wire.NewReply(421, "4.3.2 OK  %s $x ${y} DISCARD"), "DEFER_IF_PERMIT 4.3.2 OK  %s $x ${y} DISCARD"},
		{wire.NewReply(550, "5.7.1 a\n\naction=OK\r\x00\x7f"), "550 5.7.1 a??action=OK???"},
		{wire.NewReply(550, "5.7.1 bücher"), "550 5.7.1 bücher"},
	} {
		if got := refusal(c.reply); got != c.want {
			t.Errorf("%v: %q, want %q", c.reply, got, c.want)
		}
	}
	for _, c := range []struct {
		answer door.Answer
		want   string
	}{
		{door.Answer{}, ""},
		{door.Answer{Tags: []string{"listed; list=a"}}, "PREPEND X-Spamgate: listed; list=a"},
		{door.Answer{DiscardTag: "listed; list=a", Tags: []string{"listed; list=b"}}, "PREPEND X-Spamgate: listed; list=a"},
		{door.Answer{Tags: []string{"a\n\naction=OK"}}, "PREPEND X-Spamgate: a??action=OK"},
	} {
		if got := tag(c.answer); got != c.want {
			t.Errorf("%v: %q, want %q", c.answer, got, c.want)
		}
	}
}
