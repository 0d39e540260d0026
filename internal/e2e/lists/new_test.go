package lists

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestListBeforeReload changes a new list before the gate is reloaded.
func TestListBeforeReload(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{})
	path := filepath.Join(g.Dir, "config.toml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		io.WriteString(w, "far.example\n")
	}))
	defer server.Close()
	harness.WriteFile(t, path, string(text)+"\n[[list]]\nname = \"mine\"\npath = \"mine.txt\"\n"+
		"[[list]]\nname = \"far\"\nallow_http = true\nurl = \""+server.URL+"\"\n")
	harness.WriteFile(t, filepath.Join(g.Dir, "mine.txt"), "")
	harness.WriteFile(t, filepath.Join(g.Dir, "more.txt"), "more.example\n")
	want := fmt.Sprintf("the running gate has no list %%q yet: reload it (systemctl reload spamgate, or kill -HUP %d)\n", g.Process.Pid)
	for _, what := range []string{"fetched", "up to date"} {
		if message := g.Lists(t, 0, "fetch", "far"); message != "far: "+what+", 12 bytes\n"+fmt.Sprintf(want, "far") {
			t.Errorf("fetch says %q", message)
		}
	}
	want = fmt.Sprintf(want, "mine")
	for _, args := range [][]string{
		{"add", "one.example", "--reason", "test", "--list", "mine"},
		{"import", "more.txt", "--list", "mine"},
		{"remove", "one.example", "--list", "mine"},
	} {
		message := g.Lists(t, 0, args...)
		if !strings.Contains(message, want) || strings.Contains(message, "live") || strings.Contains(message, "no such list") || strings.Contains(message, "may hold") {
			t.Errorf("%q says %q, want %q", args, message, want)
		}
	}
	g.Signal(syscall.SIGHUP)
	harness.WaitFor(t, "the gate to take the list", func() bool { return strings.Contains(g.Lists(t, 0, "status", "--json"), `"mine"`) })
	if message := g.Lists(t, 0, "add", "two.example", "--reason", "test", "--list", "mine"); !strings.Contains(message, "live in the running gate") {
		t.Errorf("after the reload add says %q", message)
	}
}
