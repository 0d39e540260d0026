package managed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/fleet/fleettest"
	"spamgate/internal/setup"
)

// join makes a gate a member of a fleet, as internal/gate does it.
func (g *gate) join(name string, s *fleettest.Server) *fleet.Member {
	g.Helper()
	for i := range g.config.Lists {
		g.config.Lists[i].Fleet = g.config.Lists[i].Managed
	}
	g.config.Fleet.Name, g.config.Fleet.Servers = name, config.Addresses{s.URL()}
	o, err := setup.Fleet(g.config)
	if err != nil {
		g.Fatal(err)
	}
	o.Accept = setup.FleetAccept(func() *config.Config { return g.config }, g.store)
	m, err := fleet.Open(o)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(m.Close)
	g.Editor.Join(m)
	return m
}

// file returns the file of a managed list.
func (g *gate) file(list string) []byte {
	g.Helper()
	content, err := os.ReadFile(filepath.Join(g.config.State.Dir, Dir, list+".txt"))
	if err != nil {
		g.Fatal(err)
	}
	return content
}

// TestFleet edits one list on two gates at once: all edits reach both, with who made them, and
// are live there.
func TestFleet(t *testing.T) {
	s := fleettest.Start(t, nil)
	a, b := newGate(t), newGate(t)
	ma, mb := a.join("a", s), b.join("b", s)
	in := func(m *fleet.Member) func() bool {
		return func() bool {
			return !slices.ContainsFunc(m.Status().Lists, func(l fleet.ListStatus) bool { return l.Sequence == 0 })
		}
	}
	waitFor(t, "a to join", in(ma))
	waitFor(t, "b to join", in(mb))
	const n = 10
	var wg sync.WaitGroup
	for i, g := range []*gate{a, b} {
		wg.Go(func() {
			for j := range n {
				text := fmt.Sprintf("user%d-%d@example.com", i, j)
				r, err := g.Add(t.Context(), ann, "blocked", []NewEntry{entry(text, "spam")}, Options{})
				if err != nil || !r.Changed || len(r.Entries) != 1 || r.Entries[0].Change == "" {
					t.Errorf("%s: %+v, %v", text, r, err)
				}
			}
		})
	}
	wg.Wait()
	waitFor(t, "both to be equal", func() bool { return bytes.Equal(a.file("blocked"), b.file("blocked")) })
	if got := len(a.linesOf(t, "blocked")); got != 2*n {
		t.Errorf("%d entries, want %d", got, 2*n)
	}
	for i, g := range []*gate{a, b} {
		if err := g.store.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if got := g.action(fmt.Sprintf("user%d-%d@example.com", i, n-1)); got != "reject" {
				t.Errorf("gate %d: %s", i, got)
			}
		}
		own, failed := 0, 0
		for _, c := range g.changes(t, ChangesQuery{List: "blocked"}) {
			if c.Command == "add" {
				own++
			}
			if c.Command == "failed" {
				failed++
			}
		}
		if own != n || failed != 0 {
			t.Errorf("gate %d: %d own changes and %d failed ones in the audit log", i, own, failed)
		}
	}
	made := a.changes(t, ChangesQuery{List: "blocked"})
	made = slices.DeleteFunc(made, func(c Change) bool { return c.Command != "add" })
	if _, err := b.Undo(t.Context(), ann, made[0].ID, Options{}); !errors.Is(err, ErrNoChange) || !strings.Contains(err.Error(), "the gate of the fleet where the change was made") {
		t.Errorf("undoing a change of another gate: %v", err)
	}
	if _, err := b.Replace(t.Context(), ann, "blocked", Replacement{Command: "import", Content: bytes.NewReader([]byte("one@example.com\n"))}, Options{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the replacement", func() bool { return string(a.file("blocked")) == "one@example.com\n" })
}

// TestFleetOffline refuses edits of shared lists without a gate, and without a server; other
// lists can be edited.
func TestFleetOffline(t *testing.T) {
	e := offline(t)
	c := e.config()
	c.Lists[0].Fleet = true
	add := func(e *Editor, list string) error {
		_, err := e.Add(context.Background(), ann, list, []NewEntry{entry("one@example.com", "")}, Options{})
		return err
	}
	if err := add(e, c.Lists[0].Name); !errors.Is(err, ErrNoFleet) {
		t.Errorf("without a gate: %v", err)
	}
	if err := add(e, "exact"); err != nil {
		t.Errorf("a list of its own: %v", err)
	}

	s := fleettest.Start(t, nil)
	g := newGate(t)
	m := g.join("a", s)
	waitFor(t, "the gate to join", func() bool { return m.Status().Connected })
	s.Stop()
	before := g.file("blocked")
	if err := add(g.Editor, "blocked"); !errors.Is(err, fleet.ErrOffline) {
		t.Errorf("without a server: %v", err)
	}
	if after := g.file("blocked"); !bytes.Equal(before, after) {
		t.Errorf("the file has %q", after)
	}
	if changes := g.changes(t, ChangesQuery{}); len(changes) != 0 {
		t.Errorf("the audit log has %+v", changes)
	}
}
