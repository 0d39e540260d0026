package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLogFile checks that the path of a log file is relative to the configuration, and
// that an error of opening it has a place in the configuration.
func TestLogFile(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		"gate.log":            filepath.Join(dir, "gate.log"),
		"../log/gate.log":     filepath.Join(filepath.Dir(dir), "log", "gate.log"),
		"/var/log//sg/a:b.js": "/var/log/sg/a:b.js",
	} {
		file := filepath.Join(dir, "config.toml")
		text := "[log]\nlevel = \"warn\"\noutput = \"file:" + path + "\"\n[[list]]\nname = \"a\"\npath = \"a\"\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if c.Log.Output != "file:"+want {
			t.Errorf("%s: got %s, want %s", path, c.Log.Output, want)
		}
		if got, want := c.Fault("log.output", "cannot be opened", "mend it").Error(), file+":3:1: log.output: cannot be opened; mend it"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
