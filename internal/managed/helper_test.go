package managed

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

const testConfig = `
hostname = "gate.example"
[state]
dir = "state"
[guard]
protect = ["example.org"]
[[list]]
name = "blocked"
managed = true
default = true
[[list]]
name = "allowed"
managed = true
type = "allow"
default = true
[[list]]
name = "personal"
managed = true
per_recipient = true
[[list]]
name = "exact"
managed = true
match = "exact"
[[list]]
name = "file"
path = "file.txt"
`

// gate is an Editor with a store, as in a running gate.
type gate struct {
	*testing.T
	*Editor
	config *config.Config
	store  *store.Store
}

var ann = Account("ann", "editor", ThroughConsole)

// loadConfig writes and loads a configuration in a new directory.
func loadConfig(t testing.TB) *config.Config {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"config.toml": testConfig, "file.txt": "other.example # not managed\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Make(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// newGate starts a store with managed lists.
func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{T: t, config: loadConfig(t)}
	lists, err := setup.BlocklistConfig(g.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.store, err = store.Open(context.Background(), lists); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.store.Close(); err != nil {
			t.Error(err)
		}
	})
	g.Editor = New(func() *config.Config { return g.config }, g.store)
	return g
}

// offline returns an Editor as commands have it while no gate runs.
func offline(t testing.TB) *Editor {
	c := loadConfig(t)
	return New(func() *config.Config { return c }, nil)
}

func entry(text, reason string) NewEntry { return NewEntry{Name: Name{Entry: text}, Reason: reason} }

// lines returns the lines of a managed list that are not comments.
func (e *Editor) linesOf(t testing.TB, list string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(e.config().State.Dir, Dir, list+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(content), "\n") {
		t.Errorf("list %s does not end in a line end: %q", list, content)
	}
	lines := []string{}
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// changes returns all changes, the newest first.
func (e *Editor) changes(t testing.TB, q ChangesQuery) []Change {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 1 << 20
	}
	page, err := e.Changes(context.Background(), q)
	if err != nil || page.Incomplete {
		t.Fatalf("incomplete %t, %v", page.Incomplete, err)
	}
	return page.Changes
}

// action returns what the running gate does with a sender.
func (g *gate) action(address string) string {
	g.Helper()
	a, err := sender.Parse(address)
	if err != nil {
		g.Fatal(err)
	}
	v, err := g.store.Set().Lookup(verdict.Envelope, a)
	if err != nil {
		g.Fatal(err)
	}
	return v.Action.String()
}

var inAnHour = time.Now().Add(time.Hour).UTC().Truncate(time.Second)

// pinNow returns a pin of the list blocked as it is.
func pinNow(g *gate) blocklist.Pin {
	g.Helper()
	var versions []Version
	waitFor(g, "a version to be kept", func() (kept bool) {
		var err error
		versions, err = g.Versions("blocked")
		return err == nil && len(versions) > 0
	})
	return blocklist.Pin{Sum: versions[0].Sum, Entries: versions[0].Entries, Since: time.Now(), Who: "test"}
}

// waitFor waits until a condition holds.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
