package check

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// load writes a configuration and files beside it, and loads it.
func load(t testing.TB, text string, files map[string]string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	err := os.WriteFile(path, []byte(text), 0o600)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// setOf reads the lists of a configuration.
func setOf(t testing.TB, c *config.Config) *blocklist.Set {
	t.Helper()
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	lists.ReadOnly = true
	set, _, err := store.Build(t.Context(), lists)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// engineOf returns an Engine with the lists of a configuration, as a gate has it. It asks no
// DNS.
func engineOf(t testing.TB, text string, files map[string]string) *Engine {
	t.Helper()
	c := load(t, text, files)
	o, err := OnDisk(t.Context(), c, setOf(t, c), true)
	if err != nil {
		t.Fatal(err)
	}
	o.Command = false
	return New(o)
}

// sessionOf returns a session for a question.
func sessionOf(t testing.TB, e *Engine, q Question) *session {
	t.Helper()
	k, err := e.session(q)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
