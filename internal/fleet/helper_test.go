package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
	"spamgate/internal/listedit"
)

// quick are the times of tests.
var quick = times{
	resync: 200 * time.Millisecond, presence: 200 * time.Millisecond, lease: time.Second, abstain: 3 * time.Second, clean: time.Hour,
	orphan: time.Hour, edit: 20 * time.Second, grace: 200 * time.Millisecond, conflict: 20 * time.Second, retry: 50 * time.Millisecond,
}

// impatient makes a gate refuse edits soon, for tests of that.
func impatient(o *Options) { o.times.edit = 2 * time.Second }

// gate is a member with its state directory, which several processes may use one after the
// other.
type gate struct {
	*Member
	t testing.TB
	o Options

	mu       sync.Mutex
	accepted []string
	state    map[string]string
}

// newGate returns a gate that shares the managed list "blocked".
func newGate(t testing.TB, name string, s *fleettest.Server, change func(*Options)) *gate {
	t.Helper()
	g := &gate{t: t, state: map[string]string{}}
	dir := filepath.Join(t.TempDir(), name)
	g.o = Options{
		Name: name, Version: "test", Servers: []string{s.URL()}, StateDir: dir, times: quick,
		Lists:  []List{{Name: "blocked", Kind: Managed, Path: filepath.Join(dir, "managed", "blocked.txt"), MaxBytes: 64 << 20}},
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo})).With("gate", name),
		Accept: func(list string, sum [sha256.Size]byte) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.accepted = append(g.accepted, fmt.Sprintf("%s %x", list, sum[:4]))
			return nil
		},
		StateChanged: func(key string, value json.RawMessage) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.state[key] = string(value)
			return nil
		},
	}
	if change != nil {
		change(&g.o)
	}
	for _, dir := range []string{"managed", "copies/web"} {
		if err := os.MkdirAll(filepath.Join(g.o.StateDir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range g.o.Lists {
		if l.Kind == Managed {
			g.write(l.Name, "# kept by spamgate\n") // as package managed makes it
		}
	}
	t.Cleanup(func() { g.stop() })
	return g
}

// startGate returns a gate that runs.
func startGate(t testing.TB, name string, s *fleettest.Server, change func(*Options)) *gate {
	t.Helper()
	g := newGate(t, name, s, change)
	g.start()
	return g
}

func (g *gate) start() {
	g.t.Helper()
	m, err := Open(g.o)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Member = m
}

func (g *gate) stop() {
	if g.Member != nil {
		g.Member.Close()
		g.Member = nil
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if testing.Verbose() {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// path returns the file of a list.
func (g *gate) path(list string) string {
	i := slices.IndexFunc(g.o.Lists, func(l List) bool { return l.Name == list })
	return g.o.Lists[i].Path
}

// write writes the file of a list, as if the gate had had it before it was shared.
func (g *gate) write(list, content string) {
	g.t.Helper()
	if err := os.WriteFile(g.path(list), []byte(content), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// read returns the file of a list; "" if there is none.
func (g *gate) read(list string) string {
	b, err := os.ReadFile(g.path(list))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		g.t.Fatal(err)
	}
	return string(b)
}

// edit changes a list as package managed does.
func (g *gate) edit(list string, change func(old string) string) error {
	return g.Retry(g.t.Context(), list, func() error { return g.tryEdit(list, change) })
}

// tryEdit is edit once.
func (g *gate) tryEdit(list string, change func(old string) string) error {
	var done func(bool)
	_, err := listedit.Rewrite(g.t.Context(), g.path(list), func(old io.ReadSeeker, w io.Writer) error {
		text, err := io.ReadAll(old)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, change(string(text)))
		return err
	}, listedit.Options{StateDir: g.o.StateDir, Publish: func(ctx context.Context, c listedit.Change, old, content *os.File) (err error) {
		done, err = g.Publish(ctx, Edit{List: list, Author: "ann", What: "added", Accepted: true, SHA256: c.SHA256, Size: c.Size, Old: old, New: content})
		return err
	}})
	if done != nil {
		done(err == nil)
	}
	return err
}

// add adds a line to a list.
func (g *gate) add(list, line string) error {
	return g.edit(list, func(old string) string { return old + line + "\n" })
}

func (g *gate) mustAdd(list, line string) {
	g.t.Helper()
	if err := g.add(list, line); err != nil {
		g.t.Fatalf("%s: adding %s: %v%s", g.o.Name, line, err, listStates(list, []*gate{g}))
	}
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	eventuallyOr(t, what, func() string { return "" }, condition)
}

// eventuallyOr is eventually that tells the state of things if the condition does not come.
func eventuallyOr(t testing.TB, what string, state func() string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 20 s: %s%s", what, state())
		}
	}
}

// look makes a gate look at a list's file.
func (g *gate) look(list string) {
	g.t.Helper()
	l, err := g.list(list)
	if err != nil {
		g.t.Fatal(err)
	}
	l.look()
}

// listStates tells what gates have of a list, a line each.
func listStates(list string, gates []*gate) string {
	var b strings.Builder
	for _, g := range gates {
		l, err := g.list(list)
		if err != nil {
			g.t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(g.read(list)))
		g.Member.mu.Lock()
		fmt.Fprintf(&b, "\n%s: file %x", g.o.Name, sum[:4])
		if a := l.applied; a != nil {
			fmt.Fprintf(&b, ", applied %d %s revision %d", a.Version.Sequence, a.Version.SHA256[:8], a.Revision)
		}
		if r := l.remote; r != nil {
			fmt.Fprintf(&b, ", remote revision %d error %v", r.revision, r.err)
			if r.version != nil {
				fmt.Fprintf(&b, " sequence %d %s", r.version.Sequence, r.version.SHA256[:8])
			}
		}
		fmt.Fprintf(&b, ", pending %q, fresh %v, force %v, error %v, looks %d of %d, buckets %v, trouble %v",
			l.pending, l.fresh, l.force, l.err, l.looks, l.begun, g.Member.buckets != nil, g.Member.trouble)
		g.Member.mu.Unlock()
	}
	return b.String()
}

// has waits until a list has a content on all gates.
func has(t testing.TB, list, content string, gates ...*gate) {
	t.Helper()
	for _, g := range gates {
		eventually(t, fmt.Sprintf("%s has %q", g.o.Name, shorten(content)), func() bool { return g.read(list) == content })
	}
}

func shorten(s string) string { return s[:min(len(s), 60)] }

// equal waits until all gates have the same version of a list, and it is in the file.
func equal(t testing.TB, list string, gates ...*gate) *Version {
	t.Helper()
	var first *Version
	eventuallyOr(t, "all gates are equal", func() string { return listStates(list, gates) }, func() bool {
		first = nil
		for _, g := range gates {
			v := g.version(list)
			if v == nil || first != nil && (v.SHA256 != first.SHA256 || v.Sequence != first.Sequence) {
				return false
			}
			if sum := sha256.Sum256([]byte(g.read(list))); fmt.Sprintf("%x", sum) != v.SHA256 {
				return false
			}
			first = v
		}
		return true
	})
	return first
}

// version returns the applied version of a list; nil if there is none, or if the fleet has
// another one.
func (g *gate) version(list string) *Version {
	l, err := g.list(list)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Member.mu.Lock()
	defer g.Member.mu.Unlock()
	if l.applied == nil || l.remote == nil || l.remote.revision != l.applied.Revision || l.pending != "" {
		return nil
	}
	v := l.applied.Version
	return &v
}

// noted returns the version that a list had last; nil if it had none.
func (g *gate) noted(list string) *Version {
	l, err := g.list(list)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Member.mu.Lock()
	defer g.Member.mu.Unlock()
	if l.applied == nil {
		return nil
	}
	v := l.applied.Version
	return &v
}

// failing returns the error that a list has; nil if it has none.
func (g *gate) failing(list string) error {
	l, err := g.list(list)
	if err != nil {
		return err
	}
	g.Member.mu.Lock()
	defer g.Member.mu.Unlock()
	return l.err
}

// lines returns n lines of a list.
func lines(n int, prefix string) string {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%s%07d@example.net\n", prefix, i)
	}
	return b.String()
}

// noise returns n lines of a list that hardly can be packed.
func noise(n int) string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(uint64(n), 0))
	for range n {
		fmt.Fprintf(&b, "%016x%016x%016x@example.net\n", r.Uint64(), r.Uint64(), r.Uint64())
	}
	return b.String()
}
