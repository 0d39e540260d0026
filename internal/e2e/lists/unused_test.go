package lists

import (
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestUnusedEntries asks which entries have not matched, with a gate and without.
func TestUnusedEntries(t *testing.T) {
	t.Parallel()
	day := harness.Today()
	g := harness.StartGate(t, harness.Setup{Files: map[string]string{"blocked.txt": "used.example\nidle.example\n!friend@idle.example\n"}})
	harness.WaitVerdict(t, g.Addr, "x@sub.used.example", "550")
	harness.SkipAfter(t, day)
	const want = "blocked.txt:2\tidle.example\tnever\nblocked.txt:3\t!friend@idle.example\tnever\n"
	if text := g.Lists(t, 0, "unused", "--since", day); !strings.HasPrefix(text, want) {
		t.Errorf("with a gate: %q, want %q", text, want)
	}
	if text := g.Lists(t, 2, "unused", "--since", "30d"); !strings.Contains(text, "are not known") || strings.Contains(text, "never") {
		t.Errorf("of a time that is not known: %q", text)
	}
	g.Stop()
	if text := g.Lists(t, 0, "unused", "--since", day); !strings.HasPrefix(text, want) {
		t.Errorf("without a gate: %q, want %q", text, want)
	}
}

// TestUnusedUnconfirmed checks that a gate whose filter alone decides names no entries
// without a match and shows no count of matches, because it does not know them.
func TestUnusedUnconfirmed(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Files: map[string]string{"blocked.txt": "used.example\n"}, Tables: "[filter]\nconfirm = false\n"})
	harness.WaitVerdict(t, g.Addr, "x@used.example", "550")
	unknown := func() {
		t.Helper()
		text := g.Lists(t, 2, "unused", "--since", time.Now().UTC().Format(time.DateOnly))
		if !strings.Contains(text, "list blocked: which entries match is not known") || strings.Contains(text, "never") {
			t.Errorf("unused says %q", text)
		}
	}
	unknown()
	if s := g.Status(t, "blocked"); s.Lists[0].HitsToday != nil {
		t.Errorf("hits today: %+v", s)
	}
	g.Stop()
	unknown()
}
