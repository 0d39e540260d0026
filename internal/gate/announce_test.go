package gate

import (
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestRecipient: what is to be tried must not be refused for its recipient.
func TestRecipient(t *testing.T) {
	for want, domains := range map[string][]string{
		"you@example.net": nil,
		"you@example.org": {"example.org", "example.com"},
		"you@example.com": {".example.com"},
	} {
		if got := recipient(domains); got != want {
			t.Errorf("%q: %s", domains, got)
		}
	}
}

// TestTrials: the first of the lines has the label, also if no listener or door has one.
func TestTrials(t *testing.T) {
	const last = "spamgate check ADDRESS   shows what happens to a sender, and why\n"
	milter := &runningDoor{config: config.Door{Table: config.TableMilter}}
	for _, test := range []struct {
		lists []config.List
		want  string
	}{
		{nil, "  try        " + last},
		{[]config.List{{Type: "block", Format: "plain", Path: "/l.txt"}},
			"  try        echo 'offers.example  # reported three times' >> /l.txt\n             " + last},
		{[]config.List{{Name: "blocked", Type: "block", Format: "plain", Path: "/state/managed/blocked.txt", Managed: true}},
			"  try        spamgate lists add offers.example --list blocked --reason 'reported three times'\n             " + last},
	} {
		var got strings.Builder
		g := &gate{config: &config.Config{Lists: test.lists}, doors: []*runningDoor{milter}}
		printTrials(&got, g.trials())
		if got.String() != test.want {
			t.Errorf("got\n%swant\n%s", got.String(), test.want)
		}
	}
}
