package fleet

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// entriesOf returns how many entries the list of a new gate has: SPAMGATE_FLEET_ENTRIES, or ten
// million in full.
func entriesOf() int {
	if n, err := strconv.Atoi(os.Getenv("SPAMGATE_FLEET_ENTRIES")); err == nil {
		return n
	}
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		return 10_000_000
	}
	return 20_000
}

// TestNewGate starts a gate with an empty disk in a fleet with a long list, which has been edited
// since it was stored as a whole. The gate refuses the first client already.
func TestNewGate(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	entries := entriesOf()
	dir := setup(n, "mx1").Dir(t)
	if err := os.MkdirAll(filepath.Join(dir, "state", "managed"), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "state", "managed", "shared.txt"))
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(file)
	for i := range entries {
		fmt.Fprintf(w, "user%08d@spam%d.example\n", i, i%100_000)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	old := &member{harness.Serve(t, dir), "mx1"}
	published := func() bool {
		f := old.status()
		return len(f.Lists) == 1 && f.Lists[0].Sequence > 0
	}
	for deadline := time.Now().Add(10 * time.Minute); !published(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the list is not published")
		}
	}
	for i := range 3 {
		old.Lists(t, 0, "add", fmt.Sprintf("edit%d.example", i), "--reason", "after the whole was stored")
	}
	began := time.Now()
	fresh := harness.LaunchGate(t, setup(n, "mx2"))
	fresh.Addr = fresh.WaitListening()
	took := time.Since(began)
	for _, from := range []string{"user00000000@spam0.example", fmt.Sprintf("user%08d@spam%d.example", entries-1, (entries-1)%100_000), "a@edit0.example", "a@edit2.example"} {
		first := harness.MustDial(t, fresh.Addr)
		if reply, err := first.Verdict(from, "b@example.net"); err != nil || reply[:3] != "550" {
			t.Errorf("%s gets %q, %v", from, reply, err)
		}
	}
	here := fresh.WaitRecord("the shared lists are here")
	t.Logf("%d entries: a new gate serves %v after its start; the list was there %v after it began to wait", entries, took.Round(time.Millisecond), time.Duration(here["after"].(float64)).Round(time.Millisecond))
	waitEqual(t, old, &member{fresh, "mx2"})
}

// TestNewGateFetched starts a gate with an empty disk, whose list from a URL the fleet has: it does
// not fetch it.
func TestNewGateFetched(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprintln(w, "fetched.example")
	}))
	defer server.Close()
	with := func(name string) harness.Setup {
		s := setup(n, name)
		s.Lists += fmt.Sprintf("[[list]]\nname = \"fetched\"\nurl = \"%s/list\"\nallow_http = true\nrefresh = \"1h\"\nfleet = true\n", server.URL)
		return s
	}
	old := &member{harness.StartGate(t, with("mx1")), "mx1"}
	harness.WaitFor(t, "both lists are shared", func() bool {
		f := old.status()
		return len(f.Lists) == 2 && f.Lists[0].Sequence > 0 && f.Lists[1].Sequence > 0
	})
	before := asked.Load()
	fresh := harness.StartGate(t, with("mx2"))
	if reply, err := harness.MustDial(t, fresh.Addr).Verdict("a@fetched.example", "b@example.net"); err != nil || reply[:3] != "550" {
		t.Errorf("the first client gets %q, %v", reply, err)
	}
	if current := asked.Load(); current != before {
		t.Errorf("the list was fetched %d more times", current-before)
	}
}
