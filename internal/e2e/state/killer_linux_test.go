package state

import (
	"io/fs"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"spamgate/internal/e2e/harness"
)

// A treeWatcher reports the events in a directory and in all directories below it.
type treeWatcher struct {
	*fsnotify.Watcher
}

// watchTree starts to watch a directory tree.
func watchTree(t testing.TB, dir string) treeWatcher {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	h := treeWatcher{w}
	h.add(dir)
	return h
}

// add watches the directories that exist now. It ignores those that are gone again.
func (h treeWatcher) add(dir string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			h.Add(path)
		}
		return nil
	})
}

// waitEvent waits for an event, and reports false if late comes first.
func (h treeWatcher) waitEvent(late <-chan time.Time) bool {
	select {
	case e := <-h.Events:
		h.watchNew(e)
		return true
	case <-late:
	}
	select { // this process may have been delayed
	case e := <-h.Events:
		h.watchNew(e)
		return true
	default:
		return false
	}
}

// watchNew watches a new directory.
func (h treeWatcher) watchNew(e fsnotify.Event) {
	if e.Has(fsnotify.Create) {
		h.add(e.Name)
	}
}

// quietTime without an event means that a build is done.
const quietTime = time.Second

// countBuild changes the list of a gate, and returns the number of events in its state
// directory until it is quiet.
func countBuild(g *harness.Gate, state string, change func()) (n int) {
	g.T.Helper()
	h := watchTree(g.T, state)
	defer h.Close()
	change()
	g.WaitRecord("lists live", "generation", "2")
	for h.waitEvent(time.After(quietTime)) {
		n++
	}
	return max(1, n)
}

// A killer kills a gate after a number of events and a delay.
type killer struct {
	treeWatcher
	events int
	delay  time.Duration
}

// newKiller returns a killer that watches the state directory.
func newKiller(t testing.TB, state string, events int, delay time.Duration) *killer {
	return &killer{watchTree(t, state), events, delay}
}

// begin drops the events so far.
func (k *killer) begin() {
	for {
		select {
		case e := <-k.Events:
			k.watchNew(e)
		default:
			return
		}
	}
}

// kill waits for the events, or until no more come, and kills the gate. It returns the
// number of events of a build, as far as it is known.
func (k *killer) kill(g *harness.Gate) (events int) {
	defer k.Close()
	events = math.MaxInt
	for n := range k.events {
		if !k.waitEvent(time.After(quietTime)) {
			events = max(1, n)
			break
		}
	}
	time.Sleep(k.delay)
	g.Kill()
	g.Wait()
	return events
}
