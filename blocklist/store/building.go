package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"spamgate/internal/durable"
)

// Reading a list may be more than the machine, or a limit of the service, has memory
// for: the process is killed then, started again, and killed again. So it is noted
// that a version of a list is being read, until that is live or given up, and what is
// found noted by a process that is gone counts as a kill.

// mostKills is how often a process may have been killed while it read a version, until
// that is held.
const mostKills = 2

// ErrKilled is said of a version that processes were killed over. Use errors.Is. It is
// an [ErrHeld]; what accepts it has it tried once more.
var ErrKilled error = heldError("the gate was killed twice while it read this version of the list, probably because memory ran out")

// building is the file "building" of a list's directory.
type building struct {
	Version string `json:"version"` // see versionID
	Kills   int    `json:"kills"`   // processes that were killed over it
	Work    string `json:"work"`    // the directory of the process that is at it; "": none is
}

// versionID names a version before it is read: by how its files look, and how they are
// read. So files that were changed, or only touched, are another one.
func versionID(stamps []stamp, o *readOptions, l *List) string {
	h := sha256.New()
	fmt.Fprintln(h, o.sum(l))
	for _, s := range stamps {
		fmt.Fprintf(h, "%q %d %d %d %d %d\n", s.path, s.device, s.inode, s.size, s.modified, s.change)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func buildingFile(list string) string { return path.Join(ListName(list), buildingName) }

// readBuilding reads what is noted of a list. What is missing or damaged says nothing.
func readBuilding(tree durable.Tree, list string) (b building, err error) {
	text, err := tree.ReadFile(buildingFile(list), maxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil && json.Unmarshal(text, &b) != nil {
		b = building{}
	}
	return b, err
}

// kills is how many processes were killed while they read a version.
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

// atWork reports whether the process lives whose directory for work that is.
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

// beginBuild notes that a version is being read. It is not synced: a kill does not
// need it, and a loss of power is none of memory.
func (s *state) beginBuild(list, version string) {
	if !s.writable() {
		return
	}
	if err := s.noteBuild(list, building{version, s.kills(list, version), s.work}); err != nil {
		s.log.Debug("not noted that the list is being read", "list", list, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.building[list] = true
}

func (s *state) noteBuild(list string, b building) error {
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

// endBuilds removes what beginBuild has noted, but for lists that keep says yes to:
// they have gone live, or there was something wrong with them. What another process
// has noted meanwhile stays.
func (s *state) endBuilds(keep func(list string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for list := range s.building {
		if keep(list) {
			continue
		}
		delete(s.building, list)
		if b, err := readBuilding(s.tree, list); err == nil && b.Work == s.work {
			_ = s.tree.Remove(buildingFile(list)) // else this version has one kill too many
		}
	}
}

// killed is the error of a version that processes were killed over, if something can
// serve in its place; nil for others. A list that has nothing is tried again and again:
// the gate does not start without it.
func (s *source) killed(stamps []stamp) error {
	if s.live.good == nil && !s.list.Optional {
		return nil
	}
	if s.state.kills(s.list.Name, versionID(stamps, &s.options, s.list)) < mostKills {
		return nil
	}
	return s.advise(ErrKilled, RetryKilled)
}

// RetryBuild has a version of a list that is held for [ErrKilled] tried once more, by
// the next Store with that state directory.
func RetryBuild(c Config, list string) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("list %q: %w", list, err)
	}
	i := slices.IndexFunc(c.Lists, func(l List) bool { return l.Name == list })
	if i < 0 {
		return fmt.Errorf("list %q: %w", list, ErrUnknownList)
	}
	if err := retryBuild(durable.In(c.StateDir), list); err != nil {
		return fmt.Errorf("list %q: %w", list, err)
	}
	return nil
}

// retryBuild leaves the version one kill: with the next it is held again.
func retryBuild(tree durable.Tree, list string) error {
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
