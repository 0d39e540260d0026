package blocklist

import (
	"testing"

	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// TestDeferOfAnEntry: an entry that defers makes only a refusal milder.
func TestDeferOfAnEntry(t *testing.T) {
	for action, want := range map[verdict.Action]verdict.Action{verdict.Reject: verdict.Defer, verdict.Defer: verdict.Defer, verdict.Tag: verdict.Tag, verdict.Monitor: verdict.Accept} {
		l := setList{List{Name: "l", Action: action}, noEntries}
		if m := l.match(&segment.Record{Key: "a.example", Defer: true}, verdict.Envelope, 0); m.Action != want {
			t.Errorf("%s: %s, want %s", action, m.Action, want)
		}
	}
}
