package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/internal/atomicfile"
)

// state is the state directory of a Store, or what stands in for one.
//
// Several processes may use one directory, as they do while one takes over from the other.
// They replace what they share by renaming, and each builds in a directory of its own, whose
// lock it holds. So the leftovers of a killed process can be told from the work of another.
type state struct {
	keys   *blocklist.Keys
	secret []byte // what keys are derived from; nil: nothing is kept
	log    *slog.Logger

	dir      string // "": nothing is kept
	tree     atomicfile.Tree
	readOnly bool
	work     string // the name in tree of where this Store builds; "": nothing is written
	unlock   func() // of work

	mu       sync.Mutex
	trouble  bool // something went wrong, as was logged
	failures int  // how often
	built    int  // names files in work
	pending  map[string]bool

	foreign   map[string]bool // lists that another version of the program has stored
	building  map[string]bool // lists of which it is noted that they are being read
	deferring atomic.Bool     // long lists are not read yet: see Store.Listening
}

// openState makes a state directory usable. If it cannot, it logs that and goes on with less:
// each start reads the lists again then, which takes longer and does no harm. The directory
// may become usable later: see newName.
func openState(dir string, readOnly bool, log *slog.Logger) *state {
	s := &state{keys: blocklist.ProcessKeys(), log: log, readOnly: readOnly, pending: map[string]bool{}, building: map[string]bool{}, foreign: map[string]bool{}}
	if dir == "" {
		return s
	}
	s.tree = atomicfile.In(dir)
	secret, err := readSecret(s.tree)
	if errors.Is(err, errUnknownKey) && !readOnly && s.setAside(keyName, err) {
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) && !readOnly {
		secret, err = make([]byte, blocklist.SecretSize), nil
		rand.Read(secret) // never fails, see crypto/rand
	}
	switch {
	case err == nil:
		s.dir, s.secret = dir, secret
	case readOnly:
		// A tool that may not read the key, or comes before the first start.
		log.Debug("state directory not used", "dir", dir, "error", err)
	default:
		s.say(err)
	}
	if s.dir == "" {
		return s
	}
	if !readOnly {
		switch secret, err := s.openWork(); {
		case err == nil:
			s.secret = secret
		default:
			s.closeWork()
			s.say(err)
		}
	}
	s.keys = blocklist.NewKeys(s.secret)
	return s
}

// setAside renames a file that this version does not understand, and reports whether that
// worked. The version that made it finds it there.
func (s *state) setAside(name string, why error) bool {
	if err := s.tree.Rename(name, name+asideSuffix); err != nil {
		s.say(err)
		return false
	}
	s.log.Warn("state of another version set aside", "file", s.tree.Path(name+asideSuffix), "error", why)
	return true
}

// maxSmall is more than the size of any file of the state directory that is read as a whole.
const maxSmall = 16 << 20

// errUnknownKey says that the key file is not one of this version.
var errUnknownKey = errors.New("not a key of this version")

// readSecret reads the key file.
func readSecret(tree atomicfile.Tree) ([]byte, error) {
	secret, err := tree.ReadFile(keyName, maxSmall)
	if err == nil && len(secret) != blocklist.SecretSize {
		err = &fs.PathError{Op: "read", Path: tree.Path(keyName), Err: fmt.Errorf("%w: %d bytes instead of %d", errUnknownKey, len(secret), blocklist.SecretSize)}
	}
	return secret, err
}

// openWork makes the directory where this Store builds, and the key unless it is there. It
// returns the key.
func (s *state) openWork() (secret []byte, err error) {
	if err := s.tree.MakeDirs(workName); err != nil {
		return nil, err
	}
	sweepWork(s.tree)
	sweepLists(s.tree)
	for s.work == "" {
		work, err := s.tree.MakeTemp(workName, strconv.Itoa(os.Getpid())+"-*")
		if err != nil {
			return nil, err
		}
		unlock, err := s.tree.Lock(work)
		if err == nil {
			if _, err = s.tree.Stat(work); err == nil {
				s.work, s.unlock = work, unlock
				break
			}
			unlock()
		}
		// Somebody swept it away between the two.
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return makeSecret(s.tree, s.work, s.secret)
}

// makeSecret makes the key file, by way of a temporary directory, unless it is there. It
// returns its content.
func makeSecret(tree atomicfile.Tree, temporary string, secret []byte) ([]byte, error) {
	if there, err := readSecret(tree); !errors.Is(err, fs.ErrNotExist) {
		return there, err
	}
	if err := tree.WriteNew(keyName, temporary, newPattern, secret); err != nil {
		return nil, err
	}
	return readSecret(tree)
}

// errOtherKey says that the key file was replaced while the key is in use.
var errOtherKey = errors.New("the key was replaced while lists are served: restart, and the lists are read again")

// reopen makes the directory usable again if it was not: the disk was full, it could not be
// written, or it was removed.
func (s *state) reopen() {
	if s.dir == "" || s.readOnly {
		return
	}
	if s.work != "" {
		_, errWork := s.tree.Stat(s.work)
		_, errKey := s.tree.StatFile(keyName)
		if errWork == nil && errKey == nil {
			return
		}
		if errWork != nil {
			s.closeWork()
		}
		s.log.Warn("state directory is gone, it is made again", "dir", s.dir)
	}
	secret, err := s.openWork()
	if err == nil && !bytes.Equal(secret, s.secret) {
		err = &fs.PathError{Op: "use", Path: s.tree.Path(keyName), Err: errOtherKey}
	}
	if err != nil {
		s.closeWork()
		s.say(err)
	}
}

// sweepWork removes what killed processes left.
func sweepWork(tree atomicfile.Tree) {
	entries, _ := tree.ReadDir(workName) // what is left over does no harm
	for _, e := range entries {
		name := path.Join(workName, e.Name())
		if unlock, err := tree.TryLock(name); err == nil {
			_ = tree.RemoveAll(name)
			unlock()
		}
	}
}

// leftover is the age from which on a temporary file is one of a killed process: they are
// written without a pause.
const leftover = time.Hour

// sweepLists removes what killed processes left in the directories of the lists. There only
// a file that is about to be renamed has another name for a moment.
func sweepLists(tree atomicfile.Tree) {
	lists, _ := tree.ReadDir(listsName) // what is left over does no harm
	for _, l := range lists {
		list := path.Join(listsName, l.Name())
		for _, prefix := range []string{".new-", ".bits-", ".hits-", segment.TemporaryPrefix} {
			_ = tree.RemoveStale(list, prefix, leftover)
		}
		history := path.Join(list, historyName)
		if unlock, err := tree.TryLock(history); err == nil {
			_ = tree.RemoveAll(path.Join(history, unfinishedName))
			unlock()
		}
	}
}

// close removes the directory in work, and all notes.
func (s *state) close() {
	s.endBuilds(func(string) bool { return false })
	s.closeWork()
}

func (s *state) closeWork() {
	if s.work != "" {
		_ = s.tree.RemoveAll(s.work) // what is left over is swept at a start
		s.unlock()
		s.work = ""
	}
}

// say logs once that the directory cannot be used, and with a nil error that it can be used
// again.
func (s *state) say(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(err)
}

// attempt returns a function like [state.say] for what is begun now. It keeps a success to
// itself if something has failed meanwhile: what is newer is not usable again for that.
func (s *state) attempt() (say func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := s.failures
	return func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil || s.failures == failures {
			s.report(err)
		}
	}
}

// report is [state.say] with the lock.
func (s *state) report(err error) {
	before := s.trouble
	if s.trouble = err != nil; s.trouble {
		s.failures++
	}
	switch {
	case before && err != nil:
		s.log.Debug("state directory still unusable", "error", err)
	case before:
		s.log.Info("state directory is usable again", "dir", s.dir)
	case err != nil:
		s.log.Warn("state directory unusable, indexes live in temporary files and the next start reads the lists again", "error", err)
	}
}

// keeping reports whether there is a directory where something may be kept.
func (s *state) keeping() bool { return s.dir != "" }

// workDir returns the path of the directory where this Store builds; "" if it writes nothing.
func (s *state) workDir() string {
	if s.work == "" {
		return ""
	}
	return s.tree.Path(s.work)
}

// writable reports whether anything can be kept.
func (s *state) writable() bool { return s.work != "" }

// newName names a file to build an index in; "" if nothing is kept.
func (s *state) newName() string {
	s.reopen()
	if s.work == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.built++
	name := path.Join(s.work, strconv.Itoa(s.built)+".seg")
	s.pending[name] = true
	return name
}

// sweep removes what was built, except the files for which keep returns true.
func (s *state) sweep(keep func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.pending)) {
		if !keep(name) {
			_ = s.tree.Remove(name) // what is left over is swept at a start
			delete(s.pending, name)
		}
	}
}
