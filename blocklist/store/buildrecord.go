package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"

	"spamgate/internal/atomicfile"
)

// Reading a list may take more memory than the machine, or a limit of the service,
// has. The process is killed then, started again, and killed again. So each process
// notes that it is reading a version of a list, until that is live or given up. A
// note of a process that is gone counts as a kill.

// mostKills is how many processes may be killed while they read a version until it is held.
const mostKills = 2

// ErrKilled is the error of a version over which processes were killed. It is an [ErrHeld].
// Accepting what is held makes the next Store try once more. Use errors.Is.
var ErrKilled error = heldError("the gate was killed twice while it read this version of the list, probably because memory ran out")

// buildRecord is the file "building" of a list's directory.
type buildRecord struct {
	Version string `json:"version"` // see versionID
	Kills   int    `json:"kills"`   // processes that were killed over it
	Work    string `json:"work"`    // the directory of the process that is at it; "": none is
}

// versionID names a version before it is read, by how its files look and how they are read.
// So changing the files, or only touching them, makes another one.
func versionID(stamps []stamp, o *readOptions, l *List) string {
	h := sha256.New()
	fmt.Fprintln(h, o.sum(l))
	for _, s := range stamps {
		fmt.Fprintf(h, "%q %d %d %d %d %d\n", s.Path, s.Device, s.Inode, s.Size, s.Modified, s.Change)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func buildingFile(list string) string { return path.Join(ListName(list), buildingName) }

// readBuilding reads the record of a list. One that is missing or damaged is empty.
func readBuilding(tree atomicfile.Tree, list string) (b buildRecord, err error) {
	text, err := tree.ReadFile(buildingFile(list), maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil && json.Unmarshal(text, &b) != nil {
		b = buildRecord{}
	}
	return b, err
}

// kills returns how many processes were killed while they read a version.
func (s *state) kills(list, version string) int {
	if !s.keeping() {
		return 0
	}
	b, err := readBuilding(s.tree, list)
	switch {
	case err != nil:
		s.log.Debug("not known whether reading the list was interrupted", "list", list, "error", err)
		return 0
	case b.Version != version:
		return 0
	case b.Work != "" && !s.atWork(b.Work):
		return b.Kills + 1
	}
	return b.Kills
}

// atWork reports whether the process lives that works in this directory.
func (s *state) atWork(work string) bool {
	if work == s.work {
		return true
	}
	unlock, err := s.tree.TryLock(work)
	if err == nil {
		unlock()
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// beginBuild notes that a version is being read. The note is not synced: it is for
// processes that are killed, and a loss of power has nothing to do with memory.
func (s *state) beginBuild(list, version string) {
	if !s.writable() {
		return
	}
	if err := s.noteBuild(list, buildRecord{version, s.kills(list, version), s.work}); err != nil {
		s.log.Debug("not noted that the list is being read", "list", list, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.building[list] = true
}

func (s *state) noteBuild(list string, b buildRecord) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := s.tree.MakeDirs(ListName(list)); err != nil {
		return err
	}
	f, err := s.tree.Create(s.work, newPattern, 0o600)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Place(buildingFile(list))
}

// endBuilds removes the notes of beginBuild, except those of lists for which keep returns
// true. The others have gone live, or something was wrong with them. It leaves what
// another process has noted meanwhile.
func (s *state) endBuilds(keep func(list string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range slices.Sorted(maps.Keys(s.building)) {
		if keep(list) {
			continue
		}
		delete(s.building, list)
		if b, err := readBuilding(s.tree, list); err == nil && b.Work == s.work {
			_ = s.tree.Remove(buildingFile(list)) // else this version has one kill too many
		}
	}
}

// killed returns the error of a version over which processes were killed, if something can
// serve in its place; else nil. A list that has nothing to serve is tried again and
// again: the Store does not open without it.
func (s *source) killed(stamps []stamp) error {
	if s.live.good == nil && !s.list.Optional {
		return nil
	}
	if s.state.kills(s.list.Name, versionID(stamps, &s.options, s.list)) < mostKills {
		return nil
	}
	return s.advise(ErrKilled, RetryKilled)
}

// RetryBuild makes the next Store with that state directory try once more to read a
// version that is held because of [ErrKilled].
func RetryBuild(c Config, list string) error {
	if _, err := c.list(list); err != nil {
		return err
	}
	if err := retryBuild(atomicfile.In(c.StateDir), list); err != nil {
		return fmt.Errorf("list %q: %w", list, err)
	}
	return nil
}

// retryBuild leaves the version one kill: with the next one it is held again.
func retryBuild(tree atomicfile.Tree, list string) error {
	b, err := readBuilding(tree, list)
	if err != nil {
		return err
	}
	b.Kills, b.Work = mostKills-1, ""
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return tree.WriteFile(buildingFile(list), ListName(list), newPattern, text)
}
