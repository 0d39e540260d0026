package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestUnusedUnconfirmed: where the filter alone decides nobody knows which entries
// match, so none is told to be without a match, and no count of matches is shown.
func TestUnusedUnconfirmed(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{files: map[string]string{"blocked.txt": "used.example\n"}, more: "[filter]\nconfirm = false\n"})
	waitVerdict(t, g.addr, "x@used.example", "550")
	unknown := func() {
		t.Helper()
		text := g.lists(t, 2, "unused", "--since", time.Now().UTC().Format(time.DateOnly))
		if !strings.Contains(text, "list blocked: which entries match is not known") || strings.Contains(text, "never") {
			t.Errorf("unused says %q", text)
		}
	}
	unknown()
	if s := g.status(t, "blocked"); s.Lists[0].HitsToday != nil {
		t.Errorf("hits today: %+v", s)
	}
	g.stop()
	unknown()
}
