package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sharedText is a list of which some entries are in every version.
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

// witness asks a gate all the time for an entry that every version has.
type witness struct {
	gate  *gate
	stop  chan struct{}
	done  sync.WaitGroup
	asked int
}

func newWitness(t *testing.T, g *gate) *witness {
	w := &witness{gate: g, stop: make(chan struct{})}
	w.done.Go(func() {
		a := &asker{addr: g.addr}
		defer a.close()
		for ; ; w.asked++ {
			select {
			case <-w.stop:
				return
			default:
			}
			from := fmt.Sprintf("x@common%d.example", w.asked*2%killedEntries())
			if reply, err := a.verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, "550") {
				t.Errorf("%s: %q, %v, although every version lists it", from, reply, err)
				return
			}
		}
	})
	return w
}

func (w *witness) end(t *testing.T) {
	close(w.stop)
	w.done.Wait()
	if w.asked == 0 {
		t.Error("nothing was asked")
	}
}

// TestSharedState has gates take over from each other, time and again, all over one
// state directory. While two of them are there the lists change: both have each
// version, and never anything else.
func TestSharedState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := filepath.Join(dir, "blocked.txt")
	writeFile(t, filepath.Join(dir, "config.toml"), setup{more: "[state]\ndir = \"state\"\n"}.config())
	version := 0
	change := func() {
		version++
		replaceList(t, list, sharedText(version), version%2 == 0)
	}
	start := func() *gate {
		g := launch(t, dir, exec.Command(binary(t), "serve"))
		g.addr = g.waitListening()
		return g
	}
	change()
	before := start()
	for range short(amount(3, 12), 1) {
		old := newWitness(t, before)
		change() // and while this is being built
		after := start()
		young := newWitness(t, after)
		for range 2 {
			for _, g := range []*gate{before, after} {
				waitVerdict(t, g.addr, fmt.Sprintf("x@version%d.name1.example", version), "550")
				waitVerdict(t, g.addr, fmt.Sprintf("x@version%d.name1.example", version-1), "250")
			}
			change()
		}
		old.end(t)
		before.stop()
		noDamage(t, before.log.String())
		young.end(t)
		before = after
	}
	waitVerdict(t, before.addr, fmt.Sprintf("x@version%d.name1.example", version), "550")
	before.stop()
	noDamage(t, before.log.String())
	if rest := leftovers(t, filepath.Join(dir, "state")); len(rest) > 0 {
		t.Errorf("left over: %q", rest)
	}
}
