package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/term"
)

// CheckState refuses a state directory that other users can write to: they could replace the
// indexes and the key, and so decide which mail passes. The warning is about doubtful cases.
// Serving means that this process is the gate; commands, run by root above all, may use a
// directory of the gate's user.
func CheckState(c *config.Config, serving bool) (warning string, err error) {
	warning, err = atomicfile.In(c.State.Dir).Check()
	if errors.Is(err, atomicfile.ErrOwner) && !serving {
		return "", nil
	}
	if err != nil && (errors.Is(err, atomicfile.ErrShared) || errors.Is(err, atomicfile.ErrOwner)) {
		return "", fmt.Errorf("[state] dir: %w", err)
	}
	return warning, nil // other faults show when it is used
}

// ConsoleDir returns the directory with the accounts of the console.
func ConsoleDir(c *config.Config) string { return filepath.Join(c.State.Dir, "console") }

// PublishDir returns the directory with the lists that others fetch.
func PublishDir(c *config.Config) string { return filepath.Join(c.State.Dir, "publish") }

// DecisionsDir returns the directory of the history of decisions.
func DecisionsDir(c *config.Config) string { return filepath.Join(c.State.Dir, "decisions") }

// leastFree is the space that a state directory needs for a new version of a usual list.
const leastFree = 16 << 20

// ProbeState reports whether the state directory can be used: it writes a file there and
// removes it. Free is the space that is left, or -1 if that is not known.
func ProbeState(c *config.Config) (free int64, err error) {
	const prefix = "health."
	tree := atomicfile.In(c.State.Dir)
	_ = tree.RemoveStale(".", prefix, time.Hour) // the directory may be missing, which Create reports
	file, err := tree.Create(".", prefix+"*", 0o600)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return -1, fmt.Errorf("state directory %s is missing: %w", c.State.Dir, atomicfile.WithoutPath(err))
		}
		return -1, fmt.Errorf("state directory %s is not writable: %w", c.State.Dir, atomicfile.WithoutPath(err))
	}
	defer file.Discard()
	free = freeSpace(file.File)
	if _, err = file.Write(make([]byte, 4096)); err == nil {
		err = file.Sync() // a network file system may report a full disk here only
	}
	switch {
	case err != nil:
		return free, fmt.Errorf("state directory %s is not writable: %w", c.State.Dir, atomicfile.WithoutPath(err))
	case free >= 0 && free < leastFree:
		return free, fmt.Errorf("state directory %s has only %s left: make room", c.State.Dir, term.ByteSize(free))
	}
	return free, nil
}
