package console

import (
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
	"spamgate/internal/managed"
)

func TestStory(t *testing.T) {
	p := newParts(t, "")
	p.change("ann", "editor", "blocked", plainEntry("spam.example", "unsolicited mail"))
	first, second := refusal("STQRYAAAAAAA", 2*time.Minute), refusal("STQRYAAAAAAA", 2*time.Minute-time.Second)
	first.Event, first.Action = "monitored", "monitor"
	first.Attrs = append(first.Attrs, decisions.Attr{Key: "would", Value: "tag"})
	second.Recipients, second.HeaderSenders = []string{"ann@b.example"}, []string{"news@shop.example"}
	p.record(first, second)

	body := visit(t, p.Console, login(t, p.Console, "editor"), "/mail/stqryaaaaaaa", 200)
	wantText(t, body,
		"refused x@mail.spam.example", "Only logged: list blocked has spam.example (unsolicited mail)",
		"The gate refused the sender <x@mail.spam.example>: list blocked has spam.example (unsolicited mail) at state/managed/blocked.txt:3.",
		"Client 203.0.113.7", "Calls itself client.example.com", "TLS TLS 1.3", "Came in by listener listen", "Message-ID <m1@mail.spam.example>", "Size 4.6 KiB", "Took 208 µs",
		"Reply to the client 550 5.7.1", "In the header news@shop.example",
		"What would happen now x@mail.spam.example refused", "news@shop.example accepted", "Trace", "Let in…", "Block…",
	)
	if i, j := strings.Index(body, "Only logged"), strings.Index(body, "The gate refused"); i > j {
		t.Error("the decisions are not in their order")
	}
	if want := "/entry/new?id=STQRYAAAAAAA&recipient=ann%40b.example&sender=x%40mail.spam.example&show=1&type=allow"; linkTo(body, "/entry/new?") != want {
		t.Errorf("let in leads to %s, want %s", linkTo(body, "/entry/new?"), want)
	}
	wantText(t, visit(t, p.Console, login(t, p.Console, "viewer"), "/mail/STQRYAAAAAAA", 200), "!Let in…", "!Block…")
	wantText(t, visit(t, p.Console, login(t, p.Console, "helpdesk"), "/mail/STQRYAAAAAAA", 200), "Let in…", "!Block…")
	bound := visit(t, p.Console, login(t, p.Console, "bound"), "/mail/STQRYAAAAAAA", 200)
	wantText(t, bound, "Let in…", "What would happen now x@mail.spam.example refused")

	p.change("ann", "editor", "allowed", managed.NewEntry{Name: managed.Name{Entry: "x@mail.spam.example"}, Until: time.Now().Add(time.Hour)})
	wantText(t, visit(t, p.Console, login(t, p.Console, "editor"), "/mail/STQRYAAAAAAA", 200), "What would happen now x@mail.spam.example accepted", "refused x@mail.spam.example")
}

func TestStoryUnknown(t *testing.T) {
	p := newParts(t, "")
	viewer := login(t, p.Console, "viewer")
	p.record(refusal("KNQWNAAAAAAA", time.Hour))
	wantText(t, visit(t, p.Console, viewer, "/mail/UNKNQWNAAAAA", 404), "No message UNKNQWNAAAAA", "The history reaches back to", "accepted the message as usual")
	wantText(t, visit(t, p.Console, viewer, "/mail/short", 404), "12 letters and digits")
	wantText(t, visit(t, p.Console, viewer, "/mail/%3Cscript%3E", 404), "No message <SCRIPT>")
}

// TestStoryOfMany has a message with more decisions and recipients than are shown at once.
func TestStoryOfMany(t *testing.T) {
	p := newParts(t, "")
	for i := range maxEvents + 5 {
		d := refusal("MANYAAAAAAAA", time.Hour-time.Duration(i)*time.Second)
		d.Recipients = []string{numbered(i, 0).ID + "@b.example"}
		p.record(d)
	}
	body := visit(t, p.Console, login(t, p.Console, "viewer"), "/mail/MANYAAAAAAAA", 200)
	wantText(t, body, "There are more decisions about this message.", "and 190 more")
}

// TestStoryAsksOthers checks when the page offers to ask the DNS.
func TestStoryAsksOthers(t *testing.T) {
	for more, want := range map[string]string{"": "!Ask them, too", "[[list]]\nname = \"partners\"\ntype = \"allow\"\nmanaged = true\nproven_by = [\"spf\"]\n": "Ask them, too"} {
		p := newParts(t, more)
		p.record(refusal("QTHERSAAAAAA", time.Minute))
		wantText(t, visit(t, p.Console, login(t, p.Console, "viewer"), "/mail/QTHERSAAAAAA", 200), want)
	}
}
