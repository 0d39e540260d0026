package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// listServer serves lists: /good, which it knows again, /bad and nothing else.
func listServer(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agent := r.Header.Get("User-Agent"); agent != setup.UserAgent {
			t.Errorf("user agent %q", agent)
		}
		switch {
		case r.URL.Path != "/good":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", `"1"`)
			io.WriteString(w, "spam.example # fetched\n")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// fetchConfig writes a configuration with these lists, each a name and what stands
// below it, and goes to its directory.
func fetchConfig(t *testing.T, lists ...string) {
	t.Helper()
	text := "[next_hop]\naddr = \"smtp://192.0.2.2\"\n"
	for i := 0; i < len(lists); i += 2 {
		text += "[[list]]\nname = \"" + lists[i] + "\"\n" + lists[i+1] + "\n"
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.toml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fromURL(url string) string { return `allow_http = true` + "\n" + `url = "` + url + `"` }

// command runs a command line, and wants an exit code.
func command(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != want {
		t.Errorf("%q: exit code %d, want %d: %s", args, code, want, &errs)
	}
	return out.String(), errs.String()
}

func wantText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("got %q, want %q", got, w)
		}
	}
}

// TestListsFetch goes from a list that was never fetched to one that is in use.
func TestListsFetch(t *testing.T) {
	s := listServer(t)
	fetchConfig(t, "ads", fromURL(s.URL+"/good?token=secret"))

	_, stderr := command(t, 2, "config", "check")
	wantText(t, stderr, `list "ads" has no usable version: not fetched yet: spamgate lists fetch ads`, "start the gate, or run: spamgate lists fetch\n")
	_, stderr = command(t, 2, "check", "a@spam.example")
	wantText(t, stderr, `not fetched yet: spamgate lists fetch ads`)

	stdout, _ := command(t, 0, "lists", "fetch", "--dry-run")
	wantText(t, stdout, "ads: would be fetched from "+s.URL+"/good?... to ")
	if _, err := os.Stat("state"); err == nil {
		t.Error("a dry run has written something")
	}

	stdout, stderr = command(t, 0, "lists", "fetch")
	wantText(t, stdout, "ads: fetched, 23 bytes\n", "no gate is running")
	if stderr != "" {
		t.Errorf("standard error: %s", stderr)
	}
	command(t, 0, "config", "check")
	stdout, _ = command(t, 1, "check", "a@spam.example")
	wantText(t, stdout, "list ads")
	stdout, _ = command(t, 0, "lists", "fetch", "ads", "ads")
	if stdout != "ads: up to date, 23 bytes\n" {
		t.Errorf("%s", stdout)
	}
}

// TestListsFetchFaults wants each failure named, and the rest to be fetched.
func TestListsFetchFaults(t *testing.T) {
	s := listServer(t)
	own := filepath.Join(t.TempDir(), "own.txt")
	fetchConfig(t, "ads", fromURL(s.URL+"/good"), "gone", fromURL(s.URL+"/gone"), "own", `path = "`+own+`"`)

	stdout, stderr := command(t, 2, "lists", "fetch")
	wantText(t, stdout, "ads: fetched, 23 bytes")
	wantText(t, stderr, `list "gone" from `+s.URL+`/gone: the server answered 404 Not Found: check the URL`)

	stdout, _ = command(t, 2, "lists", "fetch", "--json")
	var report struct {
		Lists []struct {
			List, What, Error string
			Bytes             int
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Lists) != 2 {
		t.Fatalf("%v: %s", err, stdout)
	}
	if ads, gone := report.Lists[0], report.Lists[1]; ads.What != "up to date" || ads.Bytes != 23 || gone.What != "failed" || !strings.Contains(gone.Error, "404") {
		t.Errorf("%+v", report)
	}

	_, stderr = command(t, 2, "lists", "fetch", "own")
	wantText(t, stderr, "list own is read from ", "there is nothing to fetch")
	_, stderr = command(t, 2, "lists", "fetch", "other")
	wantText(t, stderr, `config.toml has no list "other"; it has ads, gone, own`)

	fetchConfig(t, "own", `path = "own.txt"`)
	_, stderr = command(t, 2, "lists", "fetch")
	wantText(t, stderr, "config.toml has no list with a url")
}

// TestFirstLoad wants lists without a copy to be fetched before the start, and
// only those.
func TestFirstLoad(t *testing.T) {
	s := listServer(t)
	fetchConfig(t,
		"ads", fromURL(s.URL+"/good"),
		"gone", fromURL(s.URL+"/gone"),
		"perhaps", "optional = true\n"+fromURL(s.URL+"/perhaps"))
	c, err := config.Load("config.toml")
	if err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	load := func() error {
		logged.Reset()
		return setup.FirstLoad(t.Context(), c, slog.New(slog.NewTextHandler(&logged, nil)), io.Discard)
	}
	err = load()
	if err == nil || !strings.Contains(err.Error(), `list "gone" from `) || strings.Contains(err.Error(), "perhaps") {
		t.Errorf("error: %v", err)
	}
	wantText(t, logged.String(), `msg="list fetched" list=ads bytes=23`)
	if len(setup.WithoutCopy(c)) != 2 {
		t.Errorf("without copy: %v", setup.WithoutCopy(c))
	}
	c.Lists = c.Lists[:1]
	if err := load(); err != nil || logged.String() != "" {
		t.Errorf("with a copy: %v, %s", err, &logged)
	}
}

// TestListsFetchHeld wants a copy that is held to be told of each time, as long
// as it is held.
func TestListsFetchHeld(t *testing.T) {
	content, tag := "", ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tag == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		io.WriteString(w, content)
	}))
	t.Cleanup(s.Close)
	fetchConfig(t, "ads", fromURL(s.URL+"/list"))
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "host%d.example\n", i)
		}
		return b.String()
	}
	content, tag = names(2000), `"1"`
	command(t, 0, "lists", "fetch")
	serveOnce(t, "config.toml")

	content, tag = names(1100), `"2"`
	stdout, stderr := command(t, 2, "lists", "fetch")
	wantText(t, stderr, "list ads: fetched, but held: ", "shrunk too much", "spamgate lists accept ads takes it")
	if stdout != "" {
		t.Errorf("standard output: %s", stdout)
	}
	_, stderr = command(t, 2, "lists", "fetch")
	wantText(t, stderr, "list ads: up to date, but held: ")
	stdout, _ = command(t, 2, "lists", "fetch", "--json")
	wantText(t, stdout, `"held": true`, `"why": "`)
	tag = ""
	_, stderr = command(t, 2, "lists", "fetch")
	wantText(t, stderr, "503 Service Unavailable", "list ads: what came before is held: ")
	tag = `"2"`
	stdout, _ = command(t, 0, "lists", "status", "ads")
	wantText(t, stdout, "  fetched ")
	stdout, _ = command(t, 1, "lists", "diff", "ads")
	wantText(t, stdout, "0 came, 900 went, 0 changed, 1100 are the same")

	stdout, _ = command(t, 0, "lists", "accept", "ads", "--dry-run")
	wantText(t, stdout, "ads: would be accepted, 1,100 entries; 2,000 before\n", "dry run: nothing has changed")
	stdout, _ = command(t, 0, "lists", "accept", "ads")
	wantText(t, stdout, "ads: accepted, 1,100 entries; 2,000 before\n", "no gate is running")
	stdout, _ = command(t, 0, "lists", "fetch")
	wantText(t, stdout, "ads: up to date, ")
	log, err := os.ReadFile(filepath.Join("state", "audit.log"))
	if err != nil || !strings.Contains(string(log), "1100 entries; 2000 before") || strings.Contains(string(log), "if that is right") {
		t.Errorf("audit log %s, %v", log, err)
	}
}

// TestListsFetchRolledBack wants it said that a copy is an earlier version, for as
// long as the server has no other.
func TestListsFetchRolledBack(t *testing.T) {
	content := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, content) }))
	t.Cleanup(s.Close)
	fetchConfig(t, "ads", fromURL(s.URL+"/list"))
	content = "old.example\n"
	command(t, 0, "lists", "fetch")
	serveOnce(t, "config.toml")
	content = "bad.example\n"
	command(t, 0, "lists", "fetch")
	stdout, _ := command(t, 0, "lists", "rollback", "ads")
	wantText(t, stdout, "list ads: put back version ", "with 1 entry, live since ", "replaced what is in no version that is kept")
	if strings.Contains(stdout, "another") {
		t.Errorf("there is nothing to go to: %s", stdout)
	}

	const stays = "the copy stays until the server has another version\n"
	stdout, _ = command(t, 0, "lists", "fetch")
	if stdout != "ads: rolled back: "+stays {
		t.Errorf("fetch says %q", stdout)
	}
	stdout, _ = command(t, 0, "lists", "status", "ads")
	wantText(t, stdout, "  rolled back  "+stays)
	stdout, _ = command(t, 0, "lists", "status", "ads", "--json")
	wantText(t, stdout, `"rolled_back": true`)

	content = "new.example\n"
	stdout, _ = command(t, 0, "lists", "fetch")
	wantText(t, stdout, "ads: fetched, 12 bytes")
	stdout, _ = command(t, 0, "lists", "status", "ads")
	if strings.Contains(stdout, "rolled back") {
		t.Errorf("status says %s", stdout)
	}
}

// serveOnce has a gate read the lists, so that they have gone live once.
func serveOnce(t *testing.T, path string) {
	t.Helper()
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(t.Context(), lists)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ; err == nil; <-tick.C { // it is kept in the background
		versions, failed := store.Versions(c.State.Dir, c.Lists[0].Name)
		if len(versions) > 0 || failed != nil {
			err = failed
			break
		}
	}
	if err == nil {
		err = opened.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
