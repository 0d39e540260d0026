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
	events   []smtpfilter.Event
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

func (h *history) Record(e smtpfilter.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
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
			got = append(got, fmt.Sprintf("%s %v %v", e.Message, e.Recipients, e.HeaderSenders))
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
func checkSameLines(t *testing.T, events []smtpfilter.Event, lines []string) {
	t.Helper()
	var text strings.Builder
	handler := slog.NewTextHandler(&text, nil)
	for _, e := range events {
		if err := handler.Handle(t.Context(), e.Record); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Split(strings.TrimSpace(text.String()), "\n"); !slices.Equal(got, lines) {
		t.Errorf("the history has\n%s\nthe log has\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// TestParties bounds recipients and header senders, and names each of these once.
func TestParties(t *testing.T) {
	show := func(address string) string { return strings.TrimSuffix(address, "?") }
	l := smtpfilter.DecisionLog{ShowAddress: show}
	header := []verdict.HeaderSender{{Address: "from"}, {Address: "a"}, {Address: "a?"}}
	for i := range 2000 {
		header = append(header, verdict.HeaderSender{Address: fmt.Sprintf("%d?", i)})
	}
	p := l.Parties(1003, func(i int) string { return fmt.Sprintf("to%d?", i) }, "from", header)
	if len(p.Recipients) != 1000 || p.Recipients[999] != "to999" || p.MoreRecipients != 3 {
		t.Errorf("%d recipients and %d more", len(p.Recipients), p.MoreRecipients)
	}
	if n := len(p.HeaderSenders); n != 1000 || p.HeaderSenders[0] != "a" || p.HeaderSenders[1] != "0" {
		t.Errorf("%d header senders: %q", n, p.HeaderSenders[:min(n, 3)])
	}
	if p := l.Parties(0, nil, "", nil); p.Recipients != nil || p.HeaderSenders != nil || p.MoreRecipients != 0 {
		t.Errorf("%+v", p)
	}
}
