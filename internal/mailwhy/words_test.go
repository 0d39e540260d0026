package mailwhy

import (
	"testing"

	"spamgate/blocklist/verdict"
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
