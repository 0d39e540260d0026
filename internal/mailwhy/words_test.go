package mailwhy

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
)

// TestEventsExplained: each event has its words, and nothing else has.
func TestEventsExplained(t *testing.T) {
	for _, e := range verdict.Events {
		if explanations[e.Text] == nil {
			t.Errorf("%q is not explained", e.Text)
		}
	}
	if len(explanations) != len(verdict.Events) {
		t.Errorf("%d explanations of %d events", len(explanations), len(verdict.Events))
	}
}

// TestExplain: a text is one printable line, whatever strangers sent, and tells several decisions
// that are alike.
func TestExplain(t *testing.T) {
	instant := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	const repeated = " That happened 25 times, with an id each, until 2026-11-22 "
	for event := range explanations {
		d := decisions.Decision{
			Event: event, Time: instant, Last: instant.Add(time.Minute), Sender: "a\x1b@example.org", Recipients: []string{"b@example.net"}, List: "l", Entry: "e", Reply: "550 no\nyes",
			Attrs: []decisions.Attr{{Key: "identity", Value: "From"}, {Key: "sender", Value: "c@example.org"}, {Key: "error", Value: "e\u009b"}},
		}
		text := Explain(&d)
		if strings.ContainsAny(text, "\x1b\n\u009b") || strings.Contains(text, "  ") || !strings.HasSuffix(text, ".") || strings.Contains(text, "happened") {
			t.Errorf("%s: %q", event, text)
		}
		if d.Count = 25; !strings.Contains(Explain(&d), repeated) {
			t.Errorf("%s: %q", event, Explain(&d))
		}
	}
}

// TestExplained compares the explanations with the log lines about messages in docs/log.md.
func TestExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Lines about messages, senders and recipients\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1)
	if !ok || len(rows) < 15 {
		t.Fatalf("docs/log.md has %d rows", len(rows))
	}
	for _, row := range rows {
		for _, msg := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			known := msg[1] == "msg" // the head of the table
			for text := range explanations {
				known = known || strings.HasPrefix(text, msg[1])
			}
			if !known {
				t.Errorf("%q is not explained", msg[1])
			}
		}
	}
}
