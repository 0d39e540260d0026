package smtpfilter_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// pendingJudge is a Checker and Judge whose verdict on the reverse-path is pending until the
// body is known.
type pendingJudge struct {
	before, after verdict.Verdict

	mu    sync.Mutex
	asked []bool // BodyKnown, for each query about the reverse-path
}

func (j *pendingJudge) Judge() verdict.Judge { return judgeOf{j} }

type judgeOf struct{ j *pendingJudge }

func (judgeOf) Generation() uint64 { return 1 }

func (a judgeOf) Judge(_ context.Context, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	a.j.mu.Lock()
	defer a.j.mu.Unlock()
	if q.Stage != verdict.Envelope {
		return verdict.Verdict{}, nil
	}
	a.j.asked = append(a.j.asked, m.BodyKnown)
	if m.BodyKnown {
		return a.j.after, nil
	}
	return a.j.before, nil
}

// TestPendingVerdict wants a pending verdict to refuse nothing at RCPT, and the verdict on
// the whole message to count before the next hop receives its end.
func TestPendingVerdict(t *testing.T) {
	of := func(a verdict.Action, pending bool) verdict.Verdict {
		return verdict.Verdict{Action: a, Pending: pending, Match: verdict.Match{List: "proofs", Entry: "@example.com", Action: a}}
	}
	for _, tt := range []struct {
		name          string
		before, after verdict.Verdict
		rcpt          string
		want          string
		delivered     int
		log           string
	}{
		{"cleared by the body", of(verdict.Reject, true), of(verdict.Accept, false), "b@example.net", "250", 1, "msg=accepted"},
		{"rejected by the body", of(verdict.Accept, true), of(verdict.Reject, false), "b@example.net", "550 5.7.1 <a@example.com> refused: list proofs", 0, "msg=refused"},
		{"deferred by the body", of(verdict.Accept, true), of(verdict.Defer, false), "b@example.net", "451 4.7.1 <a@example.com>", 0, "msg=refused"},
		{"discarded by the body", of(verdict.Accept, true), of(verdict.Discard, false), "b@example.net", "250", 0, "msg=discarded"},
		{"still pending", of(verdict.Reject, true), of(verdict.Reject, true), "b@example.net", "550 5.7.1", 0, "msg=refused"},
		{"exempt recipient", of(verdict.Reject, true), of(verdict.Reject, false), "postmaster@example.net", "250", 1, "msg=accepted"},
		{"discarded, exempt recipient", of(verdict.Discard, true), of(verdict.Discard, false), "postmaster@example.net", "250", 1, "msg=accepted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sink := smtptest.NewSink(t)
			j := &pendingJudge{before: tt.before, after: tt.after}
			var log lockedBuffer
			g := newGate(t, gateOptions{nextHop: sink.Addr(), checker: j, log: slog.New(slog.NewTextHandler(&log, nil)),
				policy: smtpfilter.Policy{HeaderFields: []string{"From"}}})
			c := dial(t, g.addr)
			c.reply("220")
			c.send("HELO client.example\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<" + tt.rcpt + ">\r\nDATA\r\n")
			for _, want := range []string{"250", "250", "250", "354"} {
				c.reply(want)
			}
			c.send("From: <a@example.com>\r\n\r\nhello\r\n.\r\n")
			c.reply(tt.want)
			c.send("NOOP\r\n")
			c.reply("250")
			if got := len(sink.Messages()); got != tt.delivered {
				t.Errorf("%d messages delivered, want %d", got, tt.delivered)
			}
			if len(j.asked) != 2 || j.asked[0] || !j.asked[1] {
				t.Errorf("the judge was asked about the reverse-path with BodyKnown %v", j.asked)
			}
			if !strings.Contains(log.String(), tt.log) {
				t.Errorf("no %q in the log:\n%s", tt.log, log.String())
			}
		})
	}
}
