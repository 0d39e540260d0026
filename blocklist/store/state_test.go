package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
	"spamgate/internal/atomicfile"
)

// stateful is fast, with a state directory.
func stateful(tb testing.TB, lists ...List) Config {
	c := fast(lists...)
	c.StateDir = inDir(tb, "state")
	return c
}

// once opens a store, has it look again, and closes it: what it leaves is what the
// next start finds.
func once(t *testing.T, c Config) *blocklist.Set {
	t.Helper()
	s := openStill(t, c)
	set, _ := rescan(t, s)
	must(t, s.Close())
	return set
}

// A success of what was begun before a failure does not make the directory usable again.
func TestSayAttempt(t *testing.T) {
	var log logBuffer
	s := openState(inDir(t, "state"), false, log.logger())
	defer s.close()
	const usable = "state directory is usable again"
	early := s.attempt()
	s.say(errors.New("the disk is full"))
	early(nil)
	if lines := log.lines(usable); len(lines) != 0 {
		t.Errorf("log: %q", lines)
	}
	early(errors.New("the disk is full"))
	s.attempt()(nil)
	if lines := log.lines(usable); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
	if lines := log.lines("state directory unusable"); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
}

// TestSayTrouble: trouble that goes on is one warning, and its end is said once.
func TestSayTrouble(t *testing.T) {
	var log logBuffer
	s := openState(inDir(t, "state"), false, log.logger())
	defer s.close()
	for range 3 {
		s.say(errors.New("the disk is full"))
	}
	bad, good := len(log.lines("state directory unusable")), len(log.lines("state directory is usable again"))
	if bad != 1 || good != 0 {
		t.Errorf("%d warnings, and %d times good again", bad, good)
	}
	s.say(nil)
	if good := len(log.lines("state directory is usable again")); good != 1 {
		t.Errorf("%d times good again", good)
	}
}

// TestSweepWork: what another process builds now stays, and what a process has left goes.
func TestSweepWork(t *testing.T) {
	tree := atomicfile.In(inDir(t, "state"))
	work := path.Join(workName, "1-x")
	must(t, tree.MakeDirs(work))
	unlock, err := tree.Lock(work)
	must(t, err)
	sweepWork(tree)
	if _, err := tree.Stat(work); err != nil {
		t.Errorf("swept while it is in use: %v", err)
	}
	unlock()
	sweepWork(tree)
	if _, err := tree.Stat(work); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left over: %v", err)
	}
}

// TestKeyReplaced: nothing is written with a key that the lists in memory do not have.
func TestKeyReplaced(t *testing.T) {
	var log logBuffer
	s := openState(inDir(t, "state"), false, log.logger())
	defer s.close()
	key := s.tree.Path(keyName)
	must(t, os.RemoveAll(s.workDir()))
	write(t, key, strings.Repeat("k", blocklist.SecretSize))
	if name := s.newName(); name != "" {
		t.Errorf("it builds in %s", name)
	}
	if lines := log.lines(errOtherKey.Error()); len(lines) != 1 {
		t.Errorf("log: %q", lines)
	}
}

// A list that is given another name is kept under that: the next start finds it,
// though its file is gone.
func TestStateOfRenamedList(t *testing.T) {
	var log logBuffer
	path := write(t, inDir(t, "spam.txt"), manyLines(2000, 0))
	c := stateful(t, blockList("spam", path))
	c.Logger = log.logger()
	s := openStill(t, c)
	c.Lists = []List{blockList("junk", path)}
	must(t, s.Reload(context.Background(), c))
	earlier := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, earlier, earlier))
	_, err := rescan(t, s)
	must(t, err)
	must(t, s.Close())
	must(t, os.Remove(path))
	set := openStill(t, c).Set()
	if l := set.Stats().Lists[0]; !l.LastGood || listed(t, set, "u@host1234.example") != verdict.Reject {
		t.Errorf("%+v", l)
	}
	if lines := log.lines("state directory"); len(lines) != 0 {
		t.Errorf("log: %q", lines)
	}
}

// forgeStamps makes the state directory believe that a list's file was last seen
// as it is now, long after it was changed.
func forgeStamps(t *testing.T, c Config, path string) {
	t.Helper()
	file := filepath.Join(ListDir(c.StateDir, "spam"), stampsName)
	text, err := os.ReadFile(file)
	must(t, err)
	var stored storedStamps
	must(t, json.Unmarshal(text, &stored))
	stamps, err := anyFile.statFiles([]string{path})
	must(t, err)
	stamps[0].Looked = time.Now().Add(time.Hour)
	digest := stored.Stamps[0].Digest
	stored.Stamps = stamps
	stored.Stamps[0].Digest = digest
	text, err = json.Marshal(stored)
	must(t, err)
	write(t, file, string(text))
}

// settled opens and closes a store so that the state directory holds its list's
// index, and stamps in a file of their own.
func settled(t *testing.T, c Config, path string) {
	t.Helper()
	once(t, c)
	earlier := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, earlier, earlier)) // touched: the stamps have changed
	once(t, c)
	forgeStamps(t, c, path)
}

// A start over lists that have not changed reads none of them: here it would find
// other entries if it did.
func TestStartReadsNoList(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com # the reason\nno entry\n")
	c := stateful(t, blockList("spam", path))
	settled(t, c, path)
	write(t, path, "example.net\n")
	forgeStamps(t, c, path)

	var log logBuffer
	c.Logger = log.logger()
	s := openStill(t, c)
	set, err := rescan(t, s)
	must(t, err)
	d := lookup(t, set, verdict.Envelope, parse(t, "u@example.com"))
	if d.Match.Reason != "the reason" || d.Match.Line != 1 || d.Match.File != path || listed(t, set, "u@example.net") != verdict.Accept {
		t.Errorf("the list was read: %+v", d)
	}
	l := set.Stats().Lists[0]
	if l.Entries != 1 || l.Invalid != 1 || len(l.Problems) != 1 || len(l.Files) != 1 || l.Loaded.IsZero() || l.Format != listfile.Plain || l.Sum == "" {
		t.Errorf("%+v", l)
	}
	if built := log.lines("index built"); len(built) != 0 {
		t.Errorf("%q", built)
	}
	if len(log.lines("invalid line skipped")) != 1 {
		t.Error("what is known to be wrong with the list was not said at the start")
	}
}

// What would read a list differently, or has changed, reads it again.
func TestStartReadsWhatChanged(t *testing.T) {
	changes := map[string]func(t *testing.T, c *Config, path string){
		"content": func(t *testing.T, c *Config, path string) { write(t, path, "example.net\n") },
		"options": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			forgeStamps(t, *c, path)
			c.Lists[0].Exact = true
		},
		"path": func(t *testing.T, c *Config, path string) {
			c.Lists[0].Paths = []string{write(t, path+".other", "example.net\n")}
		},
		"protected names": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			forgeStamps(t, *c, path)
			c.Protect = []string{"example.org"}
		},
		"key": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			forgeStamps(t, *c, path)
			write(t, filepath.Join(c.StateDir, keyName), strings.Repeat("k", blocklist.SecretSize))
		},
		"index cut": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			forgeStamps(t, *c, path)
			must(t, os.Truncate(filepath.Join(ListDir(c.StateDir, "spam"), segmentName), 100))
		},
		"index of something else": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			forgeStamps(t, *c, path)
			write(t, filepath.Join(ListDir(c.StateDir, "spam"), segmentName), "no index\n")
		},
		"no index": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			must(t, os.RemoveAll(ListDir(c.StateDir, "spam")))
		},
		"stamps of another content": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			forgeStamps(t, *c, path)
			file := filepath.Join(ListDir(c.StateDir, "spam"), stampsName)
			text, err := os.ReadFile(file)
			must(t, err)
			var stored storedStamps
			must(t, json.Unmarshal(text, &stored))
			digest := sha256.Sum256([]byte("example.net\n"))
			stored.Stamps[0].Digest = digest
			text, err = json.Marshal(stored)
			must(t, err)
			write(t, file, string(text))
		},
		"stamps damaged": func(t *testing.T, c *Config, path string) {
			write(t, path, "example.net\n")
			write(t, filepath.Join(ListDir(c.StateDir, "spam"), stampsName), "{")
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), "example.com\n")
			c := stateful(t, blockList("spam", path))
			settled(t, c, path)
			change(t, &c, path)
			for range 2 { // the second start finds what the first one left
				set := once(t, c)
				if l := set.Stats().Lists[0]; l.Err != nil || listed(t, set, "u@example.com") != verdict.Accept || listed(t, set, "u@example.net") != verdict.Reject {
					t.Errorf("not read: %+v", l)
				}
			}
		})
	}
}

// A list that fails at the start, in whatever way, serves what it last held, and
// says so.
func TestStartServesLastGood(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), "example.com # the reason\n")
			c := stateful(t, blockList("spam", path))
			once(t, c)
			put(t, path, fault.make)
			var log logBuffer
			c.Logger = log.logger()
			var s *Store
			asStranger2(t, c.StateDir, func() { s = openStill(t, c) })
			l := s.Set().Stats().Lists[0]
			if !errors.Is(l.Err, fault.err) || !l.LastGood || l.Since.IsZero() || l.Entries != 1 || l.Held != errors.Is(fault.err, ErrHeld) {
				t.Errorf("%+v", l)
			}
			if d := lookup(t, s.Set(), verdict.Envelope, parse(t, "u@example.com")); d.Match.Reason != "the reason" {
				t.Errorf("%+v", d)
			}
			if lines := log.lines("list held, its last good version serves"); len(lines) != 1 {
				t.Errorf("log: %q", lines)
			}
			put(t, path, func(tb testing.TB, path string) { write(tb, path, "example.net\n") })
			if set, err := rescan(t, s); err != nil || listed(t, set, "u@example.net") != verdict.Reject || listed(t, set, "u@example.com") != verdict.Accept {
				t.Errorf("repaired: %v", err)
			}
		})
	}
}

// asStranger2 is asStranger for a store whose state directory is the stranger's
// own.
func asStranger2(t *testing.T, dir string, f func()) {
	t.Helper()
	chownAll(t, dir, strangerID)
	defer chownAll(t, dir, 0)
	asStranger(t, f)
}

const strangerID = 65534

// chownAll gives a directory away, where this process may.
func chownAll(t *testing.T, dir string, id int) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, id, id))
	}))
}

// Another build of the program may read lists differently: it reads them again,
// and until it could it serves what it has.
func TestStartOfAnotherProgram(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := stateful(t, blockList("spam", path))
	once(t, c)
	s := newStore(c, false)
	defer s.Close()
	l := &c.Lists[0]
	src := &source{list: l, options: c.readOptions(l), state: s.state}
	v, same := s.state.load(l, src.options)
	if !same || v.stale {
		t.Fatalf("same %v, stale %v", same, v.stale)
	}
	v.stale = true
	src.live = scanResult{good: v, stamps: v.stamps}
	scan := func() scanResult {
		r, _ := src.scan(context.Background(), func(dir, name string) {}, nil, debounce{})
		return r
	}
	if r := scan(); r.err != nil || r.good == v || r.good.stale {
		t.Errorf("not read again: %+v", r)
	}
	must(t, os.Remove(path))
	if r := scan(); r.err == nil || r.good != v {
		t.Errorf("not served: %+v", r)
	}
}

// tree lists what is in a directory.
func tree(t *testing.T, dir string) (paths []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return paths
}

// Nothing is left but what belongs there: not of versions that never went live,
// nor of a process that was killed. What another one is at stays.
func TestStateIsTidy(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), manyLines(1000, 0))
	c := stateful(t, blockList("spam", path))
	c.StateDir = filepath.Join(c.StateDir, "[*") // a name, and no pattern
	other := openStill(t, c)
	killed := filepath.Join(c.StateDir, workName, "killed")
	must(t, os.Mkdir(killed, 0o700))
	write(t, filepath.Join(killed, "1.seg"), "half an index")
	long := time.Now().Add(-2 * leftover)
	for _, name := range []string{".new-1", ".bits-2", ".segment-3", ".hits-4"} {
		must(t, os.Chtimes(write(t, filepath.Join(ListDir(c.StateDir, "spam"), name), ""), long, long))
	}

	s := openStill(t, c)
	if _, err := os.Stat(killed); err == nil {
		t.Error("what a killed process left is still there")
	}
	write(t, path, "example.com\n") // is held
	s.stage(context.Background())
	_, err := rescan(t, s)
	if !errors.Is(err, ErrShrunk) {
		t.Error(err)
	}
	write(t, path, manyLines(1001, 0))
	s.stage(context.Background()) // and then it changes again
	write(t, path, manyLines(1002, 0))
	_, err = rescan(t, s)
	must(t, err)
	_, err = rescan(t, other)
	must(t, err)
	got := slices.DeleteFunc(tree(t, c.StateDir), func(p string) bool { return strings.HasSuffix(p, "/"+stampsName) || strings.HasSuffix(p, "/"+bitsName) })
	if want := []string{"lists/spam/current.seg", "lists/spam/served", "lists.key"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	must(t, s.Close())
	must(t, other.Close())
	if left, err := os.ReadDir(filepath.Join(c.StateDir, workName)); err != nil || len(left) > 0 {
		t.Errorf("left in %s: %v, %v", workName, left, err)
	}
	if info, err := os.Stat(filepath.Join(c.StateDir, keyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
}

// A tool that only reads uses what is stored, and writes nothing; not even where
// there is nothing yet.
func TestReadOnly(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := stateful(t, blockList("spam", path))
	c.ReadOnly = true
	build(t, c)
	if _, err := os.Stat(c.StateDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made: %v", err)
	}
	c.ReadOnly = false
	settled(t, c, path)
	write(t, path, "example.net\n")
	forgeStamps(t, c, path)
	before := tree(t, c.StateDir)
	c.ReadOnly = true
	set := build(t, c)
	if listed(t, set, "u@example.com") != verdict.Reject {
		t.Error("what is stored was not used")
	}
	tick(t, path)
	write(t, path, "example.org\n")
	if set := build(t, c); listed(t, set, "u@example.org") != verdict.Reject {
		t.Error("what is out of date was used")
	}
	if after := tree(t, c.StateDir); !slices.Equal(before, after) {
		t.Errorf("%q, before %q", after, before)
	}
}

// Where the state directory is of no use the lists serve all the same, and that is
// said once.
func TestStateUnusable(t *testing.T) {
	unusable := map[string]func(t *testing.T, dir string){
		"a file": func(t *testing.T, dir string) { write(t, dir, "") },
		"key cut": func(t *testing.T, dir string) { // and it cannot be set aside
			must(t, os.Mkdir(dir, 0o755))
			write(t, filepath.Join(dir, keyName), "short")
			must(t, os.Chmod(dir, 0o555))
			t.Cleanup(func() { must(t, os.Chmod(dir, 0o755)) }) // so that an ordinary user can remove it
		},
		"read-only": func(t *testing.T, dir string) { must(t, os.Mkdir(dir, 0o555)) },
	}
	for name, make := range unusable {
		t.Run(name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), "example.com\n")
			c := stateful(t, blockList("spam", path))
			var log logBuffer
			c.Logger = log.logger()
			make(t, c.StateDir)
			var s *Store
			asStranger(t, func() { s = openStill(t, c) })
			if listed(t, s.Set(), "u@example.com") != verdict.Reject {
				t.Error("not listed")
			}
			write(t, path, "example.net\n")
			if set, err := rescanAsStranger(t, s); err != nil || listed(t, set, "u@example.net") != verdict.Reject {
				t.Errorf("a change: %v", err)
			}
			if lines := log.lines("state directory unusable"); len(lines) != 1 {
				t.Errorf("log: %q", log.text.String())
			}
		})
	}
}

// The state directory stays as it was opened.
func TestReloadKeepsStateDir(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "example.com\n")
	c := stateful(t, blockList("spam", path))
	s := openStill(t, c)
	c.StateDir = inDir(t, "other")
	if err := s.Reload(context.Background(), c); err == nil || !strings.Contains(err.Error(), "restart") {
		t.Error(err)
	}
}

// Names of lists that are no names of files.
func TestListDir(t *testing.T) {
	for name, want := range map[string]string{"spam": "spam", "a/b": "a%2Fb", "..": "%2E.", ".x": "%2Ex", "ü 1": "%C3%BC%201"} {
		if got := ListDir("/s", name); got != "/s/lists/"+want {
			t.Errorf("%q: %s", name, got)
		}
	}
}
