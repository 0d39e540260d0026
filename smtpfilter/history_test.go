package smtpfilter_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// history is a History that keeps its decisions, and the plain accepts if all is set.
type history struct {
	all bool

	mu       sync.Mutex
	events   []verdict.Decision
	accepted int
}

func (h *history) Accepted(time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.all {
		h.accepted++
	}
	return h.all
}

func (h *history) Record(d verdict.Decision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, d)
}

// TestHistory: a history gets the lines of the log with all their attributes, whatever the level
// of the log is. It gets plain accepts of other messages only if it wants them, and no address that
// the log hides.
func TestHistory(t *testing.T) {
	session := func(c *client) {
		c.reply("220")
		c.send("EHLO client.example\r\nMAIL FROM:<spam@listed.example>\r\nRCPT TO:<b@example.net>\r\nRSET\r\n" +
			"MAIL FROM:<a@example.com>\r\nRCPT TO:<no@example.net>\r\nRCPT TO:<b@example.net>\r\nRCPT TO:<c@example.net>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "550", "250", "250", "550", "250", "250", "354"} {
			c.reply(want)
		}
		c.send("From: boss@listed.example, a@example.com, boss@listed.example\r\nMessage-ID: <1@example.com>\r\n\r\nbody\r\n.\r\n")
		c.reply("250")
		c.send("MAIL FROM:<a@example.com>\r\nRCPT TO:<c@example.net>\r\nDATA\r\n")
		for _, want := range []string{"250", "250", "354"} {
			c.reply(want)
		}
		c.send("x: y\r\n\r\nbody\r\n.\r\n")
		c.reply("250")
		c.send("QUIT\r\n")
		c.reply("221")
	}
	for _, tt := range []struct {
		level slog.Level
		all   bool
		show  func(string) string
		want  []string
	}{
		{slog.LevelError, false, nil, []string{
			"refused [b@example.net] []", "refused by the next hop [no@example.net] []", "monitored [] [boss@listed.example]",
			"accepted [b@example.net c@example.net] [boss@listed.example]"}},
		{slog.LevelInfo, true, func(string) string { return "HIDDEN" }, []string{
			"refused [HIDDEN] []", "refused by the next hop [HIDDEN] []", "monitored [] [HIDDEN]", "accepted [HIDDEN HIDDEN] [HIDDEN]",
			"accepted [HIDDEN] []"}},
	} {
		h := &history{all: tt.all}
		lines := logged(t, gateOptions{
			nextHop: smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{
				"RCPT TO:<no@example.net>": "550 5.1.1 <no@example.net> unknown",
			}}).Addr(),
			checker: mustJudge(t, "envelope spam@listed.example reject why not", "header boss@listed.example monitor"),
			policy:  smtpfilter.Policy{HeaderFields: []string{"From"}},
			show:    tt.show,
			history: h,
		}, tt.level, session)
		var got []string
		for _, e := range h.events {
			got = append(got, fmt.Sprintf("%s %v %v", e.Event, e.Recipients, e.HeaderSenders))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
		if want := 1; !tt.all && h.accepted != want {
			t.Errorf("%d plain accepts, want %d", h.accepted, want)
		}
		if tt.level == slog.LevelInfo {
			checkSameLines(t, h.events, lines)
		} else if len(lines) > 0 {
			t.Errorf("logged: %q", lines)
		}
	}
}

// checkSameLines wants the events to be the lines of the log.
func checkSameLines(t *testing.T, events []verdict.Decision, lines []string) {
	t.Helper()
	var text strings.Builder
	handler := slog.NewTextHandler(&text, nil)
	for _, e := range events {
		r := slog.NewRecord(e.Time, e.Level, e.Event, 0)
		r.AddAttrs(e.AppendAttrs(nil)...)
		if err := handler.Handle(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Split(strings.TrimSpace(text.String()), "\n"); !slices.Equal(got, lines) {
		t.Errorf("the history has\n%s\nthe log has\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// TestParties bounds recipients and header senders, and names each of these once.
func TestParties(t *testing.T) {
	h := new(history)
	l := smtpfilter.DecisionLog{Log: slog.New(slog.DiscardHandler), ShowAddress: func(address string) string { return strings.TrimSuffix(address, "?") }, History: h}
	m := verdict.Message{ReversePath: "from", HeaderSenders: []verdict.HeaderSender{{Address: "from"}, {Address: "a"}, {Address: "a?"}}}
	for i := range 2000 {
		m.HeaderSenders = append(m.HeaderSenders, verdict.HeaderSender{Address: fmt.Sprintf("%d?", i)})
	}
	parties := func(m verdict.Message, n int) verdict.Decision {
		d, f, recorded := verdict.Decision{Event: "refused"}, verdict.Finding{}, false
		if !l.Wants(&d, &f, &recorded) || !recorded {
			t.Fatal("not wanted")
		}
		l.Write(&d, &m, &f, n, func(i int) string { return fmt.Sprintf("to%d?", i) })
		return h.events[len(h.events)-1]
	}
	d := parties(m, 1003)
	if len(d.Recipients) != 1000 || d.Recipients[999] != "to999" || d.MoreRecipients != 3 {
		t.Errorf("%d recipients and %d more", len(d.Recipients), d.MoreRecipients)
	}
	if n := len(d.HeaderSenders); n != 1000 || d.HeaderSenders[0] != "a" || d.HeaderSenders[1] != "0" {
		t.Errorf("%d header senders: %q", n, d.HeaderSenders[:min(n, 3)])
	}
	if d := parties(verdict.Message{}, 0); d.Recipients != nil || d.HeaderSenders != nil || d.MoreRecipients != 0 {
		t.Errorf("%+v", d)
	}
}
