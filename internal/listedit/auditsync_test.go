package listedit

import (
	"path/filepath"
	"slices"
	"testing"

	"spamgate/internal/atomicfile"
)

// The name of a new log is on the disk before a record counts as written: else a loss of power
// takes the log away with all records in it.
func TestNewLogIsSynced(t *testing.T) {
	dir := t.TempDir()
	log := &Log{Dir: dir}
	var synced []string
	atomicfile.Hook = func(c atomicfile.Call) error {
		switch {
		case c.Op == "sync" && c.File == nil:
			synced = append(synced, c.Paths[0])
		case c.Op == "sync":
			synced = append(synced, filepath.Clean(c.File.Name()))
		}
		return c.Do()
	}
	defer func() { atomicfile.Hook = nil }()
	if err := log.Append(NewRecord("add", "blocked", "/lists/blocked.txt")); err != nil {
		t.Fatal(err)
	}
	if want := []string{dir, filepath.Join(dir, LogName)}; !slices.Equal(synced, want) {
		t.Errorf("synced %q, want %q", synced, want)
	}
}
