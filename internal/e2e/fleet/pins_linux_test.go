package fleet

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// passes waits until a gate accepts a sender.
func (m *member) passes(t *testing.T, from string) {
	t.Helper()
	harness.WaitVerdict(t, m.Addr, from, "250")
}

// TestPinWhileDown pins a list at a version that a gate which is down never had. More edits
// follow. The gate gets that version when it is back, and so does one with an empty disk.
func TestPinWhileDown(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2")
	mx1, mx2 := gates[0], gates[1]
	mx1.Lists(t, 0, "add", "before.example", "--reason", "both have it")
	mx2.refuses(t, "a@before.example")
	mx2.kill()
	mx1.Lists(t, 0, "add", "pinned.example", "--reason", "only one has it")
	mx1.Lists(t, 0, "pin", "shared", "--reason", "an attack")
	for i := range 7 { // more than the versions of which the fleet keeps the content apart from the value
		mx1.Lists(t, 0, "add", fmt.Sprintf("later%d.example", i), "--reason", "not live")
	}
	mx1.refuses(t, "a@pinned.example")
	mx1.passes(t, "a@later0.example")

	mx2.start()
	fresh := startMembers(t, n, "mx3")[0]
	for _, g := range []*member{mx2, fresh} {
		harness.WaitFor(t, g.name+" is pinned", func() bool {
			return strings.Contains(g.Lists(t, 0, "status", "shared", "--json"), `"pinned"`)
		})
	}
	for _, g := range []*member{mx2, fresh} {
		g.refuses(t, "a@pinned.example")
		g.passes(t, "a@later0.example")
		harness.WaitFor(t, "the signs of life say that all members serve the same", func() bool {
			cmd := exec.Command(harness.Binary(t), "fleet", "diff", "--all")
			cmd.Dir = g.Dir
			text, _, code := harness.Run(t, cmd)
			return code == 0 && strings.Contains(text, "equal on all members")
		})
	}
	mx2.Lists(t, 0, "unpin", "shared", "--reason", "it is over")
	for _, g := range []*member{mx1, mx2, fresh} {
		g.refuses(t, "a@later6.example")
	}
}

// TestPinBefore shares a list that has a pin in the fleet only after a restart.
func TestPinBefore(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	mx1 := startMembers(t, n, "mx1")[0]
	mx1.Lists(t, 0, "add", "pinned.example", "--reason", "a test")
	mx1.Lists(t, 0, "pin", "shared", "--reason", "an attack")
	mx1.Lists(t, 0, "add", "later.example", "--reason", "not live")

	s := setup(n, "mx2")
	shared := s.Lists
	s.Lists = strings.Replace(shared, "fleet = true\n", "", 1)
	mx2 := &member{harness.StartGate(t, s), "mx2"}
	mx2.passes(t, "a@pinned.example")
	harness.WaitFor(t, "mx2 knows the fleet", func() bool { return len(mx2.status().Members) == 2 })
	file := filepath.Join(mx2.Dir, "config.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, file, strings.Replace(string(text), s.Lists, shared, 1))
	mx2.Signal(syscall.SIGHUP)
	mx2.refuses(t, "a@pinned.example")
	mx2.passes(t, "a@later.example")
}

// TestRollback puts an earlier version of a managed list back on one gate, and of a fetched one on
// the gate that does not fetch it. All gates have it then.
func TestRollback(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	var content atomic.Value
	content.Store("one.example\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, content.Load()) }))
	defer server.Close()
	var gates []*member
	for _, name := range []string{"mx1", "mx2"} {
		s := setup(n, name)
		s.Lists += fmt.Sprintf("[[list]]\nname = \"fetched\"\nurl = \"%s/list\"\nallow_http = true\nfleet = true\n", server.URL)
		gates = append(gates, &member{harness.StartGate(t, s), name})
	}
	all := func(refused, passed string) {
		t.Helper()
		for _, g := range gates {
			g.refuses(t, "a@"+refused)
			g.passes(t, "a@"+passed)
		}
	}
	for _, name := range []string{"first.example", "second.example"} {
		gates[0].Lists(t, 0, "add", name, "--reason", "a test")
		for _, g := range gates {
			g.refuses(t, "a@"+name)
		}
	}
	gates[1].Lists(t, 0, "rollback", "shared", "--reason", "second was wrong")
	all("first.example", "second.example")

	all("one.example", "two.example")
	content.Store("two.example\n")
	fetches := func(g *member) bool {
		return strings.Contains(g.Lists(t, 0, "status", "fetched", "--json"), `"next_try"`)
	}
	harness.WaitFor(t, "one gate fetches", func() bool { return fetches(gates[0]) != fetches(gates[1]) })
	fetcher, other := gates[0], gates[1]
	if fetches(other) {
		fetcher, other = other, fetcher
	}
	fetcher.Lists(t, 0, "fetch", "fetched")
	all("two.example", "one.example")
	other.Lists(t, 0, "rollback", "fetched", "--reason", "two is wrong")
	all("one.example", "two.example")
}

// TestAccept accepts an update of a fetched list on one gate. It is live on both.
func TestAccept(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	var long strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&long, "old%d.example\n", i)
	}
	var content atomic.Value
	content.Store(long.String())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, content.Load()) }))
	defer server.Close()
	var gates []*member
	for _, name := range []string{"mx1", "mx2"} {
		s := setup(n, name)
		s.Lists += fmt.Sprintf("[[list]]\nname = \"fetched\"\nurl = \"%s/list\"\nallow_http = true\nfleet = true\n", server.URL)
		gates = append(gates, &member{harness.StartGate(t, s), name})
	}
	for _, g := range gates {
		g.refuses(t, "a@old7.example")
	}
	content.Store("new.example\n")
	fetches := func(g *member) bool {
		return strings.Contains(g.Lists(t, 0, "status", "fetched", "--json"), `"next_try"`)
	}
	harness.WaitFor(t, "one gate fetches", func() bool { return fetches(gates[0]) != fetches(gates[1]) })
	for _, g := range gates {
		if fetches(g) {
			g.Lists(t, 2, "fetch", "fetched") // it is held
		}
	}
	for _, g := range gates {
		harness.WaitFor(t, "the update is held on "+g.name, func() bool { return g.Status(t, "fetched").Lists[0].Held })
	}
	gates[1].Lists(t, 0, "accept", "fetched", "--reason", "the publisher has cleaned up")
	for _, g := range gates {
		g.refuses(t, "a@new.example")
		g.passes(t, "a@old7.example")
	}
}
