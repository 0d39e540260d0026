package state

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/e2e/harness"
)

// sharedText returns a version of a list. Half of its entries are in every version.
func sharedText(version int) string {
	var b strings.Builder
	for i := range killedEntries() {
		if i%2 == 0 {
			fmt.Fprintf(&b, "common%d.example\n", i)
		} else {
			fmt.Fprintf(&b, "version%d.name%d.example\n", version, i)
		}
	}
	return b.String()
}

// A witness asks a gate without a pause for an entry that every version has.
type witness struct {
	gate  *harness.Gate
	stop  chan struct{}
	done  sync.WaitGroup
	asked int
}

func newWitness(t *testing.T, g *harness.Gate) *witness {
	w := &witness{gate: g, stop: make(chan struct{})}
	w.done.Go(func() {
		a := &harness.Asker{Addr: g.Addr}
		defer a.Close()
		for ; ; w.asked++ {
			select {
			case <-w.stop:
				return
			default:
			}
			from := fmt.Sprintf("x@common%d.example", w.asked*2%killedEntries())
			if reply, err := a.Verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, "550") {
				t.Errorf("%s: %q, %v, although every version lists it", from, reply, err)
				return
			}
		}
	})
	return w
}

// end stops asking, and checks that the witness has asked.
func (w *witness) end(t *testing.T) {
	close(w.stop)
	w.done.Wait()
	if w.asked == 0 {
		t.Error("nothing was asked")
	}
}

// TestSharedState has gates take over from each other, again and again, with the same
// state directory. While two of them run, the list changes: both serve each version, and
// never anything else.
func TestSharedState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "blocked.txt")
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Tables: "[state]\ndir = \"state\"\n"}.Config())
	version := 0
	change := func() {
		version++
		replaceList(t, list, sharedText(version), version%2 == 0)
	}
	start := func() *harness.Gate {
		g := harness.Serve(t, dir)
		return g
	}
	change()
	before := start()
	for range harness.IfShort(harness.IfFull(2, 12), 1) {
		old := newWitness(t, before)
		change() // while the gates build this version
		after := start()
		young := newWitness(t, after)
		for range 2 {
			for _, g := range []*harness.Gate{before, after} {
				harness.WaitVerdict(t, g.Addr, fmt.Sprintf("x@version%d.name1.example", version), "550")
				harness.WaitVerdict(t, g.Addr, fmt.Sprintf("x@version%d.name1.example", version-1), "250")
			}
			change()
		}
		old.end(t)
		before.Stop()
		noDamage(t, before.Log.String())
		young.end(t)
		before = after
	}
	harness.WaitVerdict(t, before.Addr, fmt.Sprintf("x@version%d.name1.example", version), "550")
	before.Stop()
	noDamage(t, before.Log.String())
	if rest := leftovers(t, filepath.Join(dir, "state")); len(rest) > 0 {
		t.Errorf("left over: %q", rest)
	}
}
