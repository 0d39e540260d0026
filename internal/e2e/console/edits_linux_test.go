package console

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/e2e/harness"
)

// edits is how many edits each of two people makes: SPAMGATE_E2E_EDITS, else 25, or 500 with
// SPAMGATE_E2E_FULL.
func edits(t testing.TB) int {
	if s := os.Getenv("SPAMGATE_E2E_EDITS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		return 500
	}
	return 25
}

// TestTwoEditors has two people edit the same list, one by the API and one with commands,
// while the gate hands over to another process: none of their edits is lost, and each stands
// in the audit log once.
func TestTwoEditors(t *testing.T) {
	t.Parallel()
	n := edits(t)
	setup, url := consoleSetup(t, harness.Setup{})
	g := harness.LaunchSuccession(t, setup.Dir(t), nil, nil, harness.Binary(t), "serve")
	g.Addr = g.WaitListening()
	s := newSite(g.Gate, url)

	third := make(chan struct{}) // closed once a third of the edits are made
	var editors sync.WaitGroup
	editors.Go(func() {
		for i := range n {
			s.editByAPI(t, i)
			if i == n/3 {
				close(third)
			}
		}
	})
	editors.Go(func() {
		for i := range n {
			s.editByCommand(t, i)
		}
	})
	<-third
	g.HandOver()
	editors.Wait()
	if t.Failed() {
		return
	}

	want := map[string]bool{}
	for i := range n {
		for _, who := range []string{"api", "command"} {
			if i%5 != 4 { // see editByAPI
				want[fmt.Sprintf("%s%d.example", who, i)] = true
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, "state", "managed", "blocked.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		found++
		if entry, _, _ := strings.Cut(strings.TrimSpace(line), " "); !want[entry] {
			t.Errorf("the list has %q", line)
		}
	}
	if found != len(want) {
		t.Errorf("the list has %d entries, want %d", found, len(want))
	}
	if live := ask(t, s.api, 200, "GET", "/api/v1/lists/blocked", "/api/v1/lists/{name}", nil); live["entries"] != float64(len(want)) {
		t.Errorf("%v entries are live, want %d", live["entries"], len(want))
	}
	s.wantChanges(t, 2*(n+n/5))
}

// editByAPI adds an entry, and removes each fifth one again. During a handover a connection may
// end before the answer: then the edit is made again, which finds it made, or not.
func (s *site) editByAPI(t testing.TB, i int) {
	entry := fmt.Sprintf("api%d.example", i)
	s.until(t, func() (int, error) {
		return s.api.Do("POST", "/api/v1/lists/blocked/entries", object{"entry": entry, "reason": "by the API"}, nil)
	}, http.StatusCreated, http.StatusOK)
	if i%5 == 4 {
		s.until(t, func() (int, error) {
			return s.api.Do("DELETE", harness.EntryPath("blocked", entry), nil, nil)
		}, http.StatusOK, http.StatusNotFound)
	}
}

// until repeats a request whose connection ends before there is an answer, which must have one
// of the statuses.
func (s *site) until(t testing.TB, request func() (int, error), first, again int) {
	for try := range 20 {
		status, err := request()
		if err == nil && (status == first || try > 0 && status == again) {
			return
		}
		if err == nil {
			t.Errorf("status %d", status)
			return
		}
	}
	t.Error("no answer after 20 tries")
}

// editByCommand does the same with commands.
func (s *site) editByCommand(t testing.TB, i int) {
	entry := fmt.Sprintf("command%d.example", i)
	run := func(args ...string) {
		cmd := exec.Command(harness.Binary(t), append([]string{"lists"}, args...)...)
		cmd.Dir = s.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", cmd, err, out)
		}
	}
	run("add", entry, "--list", "blocked", "--reason", "by a command")
	if i%5 == 4 {
		run("remove", entry, "--list", "blocked")
	}
}

// wantChanges fails the test unless the changes are so many, each with an id of its own.
func (s *site) wantChanges(t testing.TB, n int) {
	t.Helper()
	seen, before := map[string]bool{}, ""
	for {
		page := ask(t, s.api, 200, "GET", "/api/v1/changes?list=blocked&limit=100&before="+before, "", nil)
		for _, c := range page["changes"].([]any) {
			seen[c.(object)["id"].(string)] = true
		}
		next, ok := page["next"].(string)
		if !ok {
			break
		}
		before = next
	}
	if len(seen) != n {
		t.Errorf("%d changes, want %d", len(seen), n)
	}
}
