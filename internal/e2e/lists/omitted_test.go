package lists

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestFetchedOmissions checks that somebody else's list stops neither bounces nor a local part
// everywhere nor a provider's subdomain, that each command says so, and that keys let them in.
func TestFetchedOmissions(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<>\ninfo@\nmail.gmail.com\nspam.example\n")
	}))
	defer server.Close()
	dir := t.TempDir()
	configure := func(keys string) {
		harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{
			Lists: fmt.Sprintf("[[list]]\nname = \"ads\"\nurl = %q\nallow_http = true\n%s", server.URL+"/ads", keys),
		}.Config())
	}
	configure("")
	g := harness.Serve(t, dir)
	for from, code := range map[string]string{"": "250", "info@other.example": "250", "u@mail.gmail.com": "250", "u@spam.example": "550"} {
		harness.WaitVerdict(t, g.Addr, from, code)
	}
	says := func(text string, wants ...string) {
		t.Helper()
		text = strings.Join(strings.Fields(text), " ")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s\nwant %q", text, want)
			}
		}
	}
	says(g.Lists(t, 0, "status", "ads"), "1 covers a protected name", "2 disallowed in a list from a URL", "set allow_null_sender = true for this list", "set allow_local_parts = true for this list", `write "@gmail.com" in protect`)
	says(g.Lists(t, 0, "status", "--json"), `"entries": 1,`, `"protected": 1,`, `"disallowed": 2,`)
	says(g.Lists(t, 0, "lint", "--list", "ads"), `"<>": the null sender`, `"info@": it matches at every domain`, `"mail.gmail.com": it covers names below gmail.com`, "3 warnings, 3 entries left out")
	says(g.Lists(t, 0, "lint", "--list", "ads", "--json"), `"left_out": 3`)
	says(g.Lists(t, 0, "find", "info@"), "left out: it matches at every domain")

	configure("allow_null_sender = true\nallow_local_parts = true\n")
	g.Signal(syscall.SIGHUP)
	for from, code := range map[string]string{"": "550", "info@other.example": "550", "u@mail.gmail.com": "250", "u@spam.example": "550"} {
		harness.WaitVerdict(t, g.Addr, from, code)
	}
}
