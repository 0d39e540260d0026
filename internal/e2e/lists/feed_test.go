package lists

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestFeedGuards checks, with a feed over HTTP, that wrong entries and their repair go live, and
// that updates which switch the list off, or make it refuse the world, are held, also after a
// restart, until somebody accepts them.
func TestFeedGuards(t *testing.T) {
	t.Parallel()
	var feed atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, feed.Load()) }))
	defer server.Close()
	right := harness.NumberedList(3000)
	feed.Store(right)
	dir := t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{
		Lists: fmt.Sprintf("[[list]]\nname = \"ads\"\nurl = %q\nallow_http = true\n", server.URL+"/ads"),
	}.Config())
	g := harness.Serve(t, dir)
	fetch := func(code int, content string) string {
		t.Helper()
		feed.Store(content)
		return strings.Join(strings.Fields(g.Lists(t, code, "fetch", "ads")), " ")
	}

	var wrong strings.Builder
	for n := range 800 {
		fmt.Fprintf(&wrong, "wrong%d.example\n", n)
	}
	fetch(0, right+wrong.String())
	harness.WaitVerdict(t, g.Addr, "x@wrong700.example", "550")
	fetch(0, harness.NumberedList(2980)+"new.example\n")
	harness.WaitVerdict(t, g.Addr, "x@new.example", "550")
	harness.WaitVerdict(t, g.Addr, "x@wrong700.example", "250")

	off := right + "!" + strings.TrimSuffix(strings.ReplaceAll(right, "\n", "\n!"), "!")
	for content, want := range map[string]string{
		off: "too many new exceptions: from 0 to 3000 in a list of 2981 entries",
		strings.ReplaceAll(right, "\n", " # until=2030-01-01\n"): "too many entries expire: of 3000 entries 0 have no until=, and 2981 before",
		harness.NumberedList(40_000):                             "grown too much: from 3800 entries to 40000",
	} {
		if text := fetch(2, content); !strings.Contains(text, want) || !strings.Contains(text, "spamgate lists accept ads takes it") {
			t.Errorf("fetch says %q, want %q", text, want)
		}
		harness.WaitVerdict(t, g.Addr, "x@new.example", "550")
	}
	fetch(2, off)
	g.Stop()
	g = harness.Serve(t, dir)
	harness.WaitVerdict(t, g.Addr, "x@new.example", "550")
	if text := g.Lists(t, 0, "accept", "ads"); !strings.Contains(text, "accepted, 6,000 entries; 2,981 before") {
		t.Errorf("accept says %q", text)
	}
	harness.WaitVerdict(t, g.Addr, "x@new.example", "250")

	// What served before is let in, whatever its size, by the feed and by rollback.
	fetch(0, harness.NumberedList(2980)+"new.example\n")
	harness.WaitVerdict(t, g.Addr, "x@new.example", "550")
	g.Lists(t, 0, "rollback", "ads")
	harness.WaitVerdict(t, g.Addr, "x@new.example", "250")
}
