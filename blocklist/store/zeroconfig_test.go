package store

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
)

// TestZeroConfig builds Sets whose configuration leaves out all that it can. A
// filter that errs half of the time has many false positives among senders that no
// list holds, and none of them may be refused.
func TestZeroConfig(t *testing.T) {
	if a := listed(t, build(t, Config{}), "anybody@example.com"); a != verdict.Accept {
		t.Errorf("the zero Config has %v for a sender", a)
	}
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "spam%d.example\n", i)
	}
	l := blockList("spam", write(t, inDir(t, "spam.txt"), text.String()))
	store := openStill(t, Config{Lists: []List{l}, Filter: blocklist.Filter{Kind: blocklist.KindSized, FPR: blocklist.MaxFPR}})
	set := store.Set()
	if a := listed(t, set, "x@spam0.example"); a != verdict.Reject {
		t.Errorf("a listed sender: %v", a)
	}
	for i := range 1000 {
		if address := fmt.Sprintf("x@unlisted%d.example", i); listed(t, set, address) != verdict.Accept {
			t.Errorf("%s, which no list holds, is refused", address)
		}
	}
	if set.FalsePositives() == 0 {
		t.Error("the filter had no false positive, so nothing was confirmed")
	}
	if d := lookup(t, set, verdict.Envelope, parse(t, "x@spam0.example")); d.Match.Line == 0 || d.Match.File == "" {
		t.Errorf("a refusal without file and line: %+v", d)
	}
}
