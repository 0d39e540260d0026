package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/fleet/fleettest"
)

// rounds returns how long random tests run: SPAMGATE_FLEET_ROUNDS, or a few.
func rounds(t testing.TB, few int) int {
	t.Helper()
	if s := os.Getenv("SPAMGATE_FLEET_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return few
}

// TestEditsAtOnce lets three gates edit one list at once: no edit is lost, and all gates are
// equal at the end.
func TestEditsAtOnce(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	var gates []*gate
	for i := range 3 {
		g := newGate(t, fmt.Sprintf("g%d", i), s, nil)
		if i == 0 {
			g.write("blocked", "# first\n")
		}
		g.start()
		if i == 0 {
			equal(t, "blocked", g)
		}
		gates = append(gates, g)
	}
	n := rounds(t, 30)
	var wg sync.WaitGroup
	for _, g := range gates {
		wg.Go(func() {
			for i := range n {
				if err := g.add("blocked", fmt.Sprintf("%s-%d@example.net", g.o.Name, i)); err != nil {
					t.Errorf("%s, edit %d: %v", g.o.Name, i, err)
				}
			}
		})
	}
	wg.Wait()
	v := equal(t, "blocked", gates...)
	if want := uint64(3*n + 1); v.Sequence != want {
		t.Errorf("sequence %d, want %d", v.Sequence, want)
	}
	if got := strings.Count(gates[0].read("blocked"), "@"); got != 3*n {
		t.Errorf("%d entries, want %d", got, 3*n)
	}
}

// TestModel does random things with gates and their server: edits, restarts of gates and of the
// server, deleted buckets, keys that are deleted or damaged, files and records that are lost.
// No acknowledged edit is lost, and in the end all gates are equal.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s := os.Getenv("SPAMGATE_FLEET_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("SPAMGATE_FLEET_SEED=%d", seed)
	w := &world{T: t, r: rand.New(rand.NewPCG(seed, 0)), s: fleettest.Start(t, nil)}
	for i := range 4 {
		g := newGate(t, fmt.Sprintf("g%d", i), w.s, func(o *Options) {
			o.times.resync = quick.resync / 4
			o.times.grace = 2 * time.Second // longer than the servers need to restart
		})
		if i == 0 {
			g.write("blocked", lines(3000, "first"))
			g.start()
			equal(t, "blocked", g)
		} else {
			g.start()
		}
		w.gates = append(w.gates, g)
	}
	w.js = client(t, w.s)
	for range rounds(t, 40) {
		w.one()
	}
	for _, g := range w.gates {
		if g.Member == nil {
			g.start()
		}
	}
	equal(t, "blocked", w.gates...)
	w.settle()
}

// world is a fleet in which things happen.
type world struct {
	*testing.T
	r     *rand.Rand
	s     *fleettest.Server
	js    jetstream.JetStream
	gates []*gate
	edits int
	made  []string // lines of acknowledged edits
}

// one does one thing.
func (w *world) one() {
	g := w.gates[w.r.IntN(len(w.gates))]
	switch n := w.r.IntN(100); {
	case n < 60:
		w.edit(g)
	case n < 70:
		w.restart(g)
	case n < 75 && g.Member != nil:
		g.kill()
	case n < 80:
		w.note("server restarted")
		w.s.Stop()
		w.s.Restart()
	case n < 84:
		w.lose(streams[w.r.IntN(len(streams))])
	case n < 88:
		w.damage()
	case n < 92:
		w.note("%s lost its record", g.o.Name)
		w.remove(g, g.o.StateDir+"/"+listsDir+"/list.blocked.json")
	case n < 96:
		w.note("%s lost its file", g.o.Name)
		w.remove(g, g.path("blocked"))
	default:
		w.settle()
	}
}

func (w *world) note(format string, args ...any) { w.Logf(format, args...) }

func (w *world) edit(g *gate) {
	if g.Member == nil {
		return
	}
	w.edits++
	line := fmt.Sprintf("edit-%d@example.net", w.edits)
	if err := g.add("blocked", line); err != nil {
		w.note("%s: edit %d: %v", g.o.Name, w.edits, err)
		return
	}
	w.made = append(w.made, line)
	w.note("%s: edit %d is sequence %d", g.o.Name, w.edits, g.sequence("blocked"))
}

// sequence returns that of the version which a list had last.
func (g *gate) sequence(list string) uint64 {
	for _, l := range g.Status().Lists {
		if l.Name == list {
			return l.Sequence
		}
	}
	return 0
}

// restart stops a gate, or starts one.
func (w *world) restart(g *gate) {
	if g.Member == nil {
		w.note("%s started", g.o.Name)
		g.start()
		return
	}
	running := 0
	for _, g := range w.gates {
		if g.Member != nil {
			running++
		}
	}
	if running > 2 { // else nobody is left who has the newest version
		w.note("%s stopped", g.o.Name)
		w.settle()
		g.stop()
	}
}

// kill replaces the process of a gate by another one, without a farewell.
func (g *gate) kill() {
	g.nc.Close()
	g.Member.Close()
	g.start()
}

// lose deletes a bucket. Its servers have lost it, so what counts is what the gates have.
func (w *world) lose(stream string) {
	w.settle()
	w.note("%s deleted", stream)
	if err := w.js.DeleteStream(w.Context(), stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		w.note("%v", err)
	}
}

// damage puts something else in the place of the list's version.
func (w *world) damage() {
	w.settle()
	kv, err := w.js.KeyValue(w.Context(), bucketLists)
	if err != nil {
		return
	}
	value := []string{"", "{", `{"format":1}`, `{"format":1,"list":"blocked","kind":"managed","sequence":1,"sha256":"00"}`}[w.r.IntN(4)]
	w.note("the key is %q", value)
	_, _ = kv.PutString(w.Context(), "list.blocked", value)
}

func (w *world) remove(g *gate, path string) {
	w.settle()
	if g.Member == nil {
		return
	}
	g.stop()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	g.start()
}

// settle waits until the running gates are equal, and checks that no edit is lost.
func (w *world) settle() {
	w.Helper()
	running := slices.DeleteFunc(slices.Clone(w.gates), func(g *gate) bool { return g.Member == nil })
	if len(running) == 0 {
		return
	}
	equal(w, "blocked", running...)
	text := running[0].read("blocked")
	for _, line := range w.made {
		if !strings.Contains(text, line+"\n") {
			w.Fatalf("the acknowledged edit %s is lost", line)
		}
	}
}
