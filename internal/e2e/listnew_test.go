package e2e

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
	"time"
)

// TestListBeforeReload changes a list that the gate does not have before it is
// reloaded.
func TestListBeforeReload(t *testing.T) {
	t.Parallel()
	g := startGate(t, setup{})
	path := filepath.Join(g.dir, "config.toml")
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
	writeFile(t, path, string(text)+"\n[[list]]\nname = \"mine\"\npath = \"mine.txt\"\n"+
		"[[list]]\nname = \"far\"\nallow_http = true\nurl = \""+server.URL+"\"\n")
	writeFile(t, filepath.Join(g.dir, "mine.txt"), "")
	writeFile(t, filepath.Join(g.dir, "more.txt"), "more.example\n")
	want := fmt.Sprintf("the running gate has no list %%q yet: reload it (systemctl reload spamgate, or kill -HUP %d)\n", g.process.Pid)
	for _, what := range []string{"fetched", "up to date"} {
		if said := g.lists(t, 0, "fetch", "far"); said != "far: "+what+", 12 bytes\n"+fmt.Sprintf(want, "far") {
			t.Errorf("fetch says %q", said)
		}
	}
	want = fmt.Sprintf(want, "mine")
	for _, args := range [][]string{
		{"add", "one.example", "--reason", "test", "--list", "mine"},
		{"import", "more.txt", "--list", "mine"},
		{"remove", "one.example", "--list", "mine"},
	} {
		said := g.lists(t, 0, args...)
		if !strings.Contains(said, want) || strings.Contains(said, "live") || strings.Contains(said, "no such list") || strings.Contains(said, "may hold") {
			t.Errorf("%q says %q, want %q", args, said, want)
		}
	}
	g.signal(syscall.SIGHUP)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(lateLimit); !strings.Contains(g.lists(t, 0, "status", "--json"), `"mine"`); <-tick.C {
		if time.Now().After(late) {
			t.Fatal("the gate does not take the list")
		}
	}
	if said := g.lists(t, 0, "add", "two.example", "--reason", "test", "--list", "mine"); !strings.Contains(said, "live in the running gate") {
		t.Errorf("after the reload add says %q", said)
	}
}
