package differential

import (
	"strings"
	"testing"
)

// TestPlantedHole takes the entries away from a gate: the readers see the listed senders then,
// and a finding is reduced to a field that still is one.
func TestPlantedHole(t *testing.T) {
	t.Parallel()
	s, r := startMaildir(t, "nobody.example\n"), startReaders(t)
	var messages []string
	for seed := range uint64(100) {
		messages = append(messages, generate(seed))
	}
	seen := map[string]bool{}
	var found []outcome
	for _, o := range s.try(t, r, messages) {
		if o.isFinding() {
			found = append(found, o)
		}
		for reader := range o.listed {
			seen[reader] = true
		}
	}
	if len(found) < len(messages)/10 || len(seen) < 4 {
		t.Fatalf("%d of %d messages were found, by %d readers", len(found), len(messages), len(seen))
	}
	least := minimise(found[0], func(m []string) []outcome { return s.try(t, r, m) })
	if !least.isFinding() || len(least.message) > 60 || strings.Count(least.message, "\r\n") > 3 {
		t.Errorf("%q was made of %q", least.message, found[0].message)
	}
}

func TestIsListed(t *testing.T) {
	for address, want := range map[string]bool{
		"spam@listed.example": true, "spam@sub.LISTED.example.": true, "evil@addr.example": true, `"evil"@addr.example`: true,
		"e\x02vil@addr.example": true, "spam@lis\u200bted.example": true, "<spam@listed.example>": true,
		"Evil@ addr.example": true, "spam@lis ted.example": true, "spam@listed.example\xff": true, "@listed.example": true, "MISSING_MAILBOX@listed.example": true,
		"ok@ok.example": false, "spam@notlisted.example": false, "spam@listed.example.ok.example": false, "ann@addr.example": false,
		"evi l@addr.example": false, "e\tvil@addr.example": false, "spam@listed.example\xc3\xa9": false, "\ufffdevil@addr.example": false, "": false, "listed.example": false, "listed.example@ok.example": false,
	} {
		if got := isListed(address); got != want {
			t.Errorf("isListed(%q) = %t", address, got)
		}
	}
}
