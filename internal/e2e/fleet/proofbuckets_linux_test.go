package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/e2e/harness"
)

// TestProofBuckets takes the buckets away from running gates, or puts older ones in their place:
// no list changes by it, and the newest gate publishes its own again.
func TestProofBuckets(t *testing.T) {
	t.Parallel()
	c := startBrokers(t, 1)
	var ways []*link
	var servers [][]string
	for range 3 {
		way := newLink(t, c.brokers[0].address())
		ways, servers = append(ways, way), append(servers, []string{"nats://" + way.addr})
	}
	w := &losing{T: t, c: c, ways: ways, gates: startFleet(t, servers...)}
	stop := watch(t, w.gates...)
	for range count(t, "SPAMGATE_FLEET_LOSSES", 1, 10) {
		w.deleted()
		w.fresh()
		w.restored()
		w.restoredUnseen()
		w.oldestFirst()
	}
	stop()
}

// losing is a fleet whose server loses what it has.
type losing struct {
	*testing.T
	c     *cluster
	ways  []*link
	gates []*member
	n     int
}

// edits makes some edits on a gate.
func (w *losing) edits(g *member, n int) {
	w.Helper()
	for range n {
		w.n++
		if err := g.edit("add", fmt.Sprintf("loss-%d.example", w.n)); err != nil {
			w.Fatal(err)
		}
	}
}

// keeps does something to the server, and checks that all gates have what the newest had before.
func (w *losing) keeps(what string, do func()) {
	w.Helper()
	newest := w.gates[0].mustEntries()
	began := time.Now()
	do()
	w.c.settle(w.gates...)
	took := time.Since(began)
	for _, g := range w.gates {
		if current := g.mustEntries(); !maps.Equal(current, newest) {
			w.Errorf("%s: %s has %d entries, not %d", what, g.name, len(current), len(newest))
		}
	}
	harness.WaitFor(w, "an edit", func() bool {
		w.n++
		return w.gates[w.n%3].edit("add", fmt.Sprintf("loss-%d.example", w.n)) == nil
	})
	w.c.settle(w.gates...)
	w.Logf("%s: all gates and the server have the newest again after %v", what, took.Round(time.Millisecond))
}

// deleted deletes the streams of all buckets.
func (w *losing) deleted() {
	w.keeps("all streams deleted", func() {
		for _, name := range streams {
			ctx, cancel := context.WithTimeout(context.Background(), harness.WorkTimeout)
			err := w.c.jetstream().DeleteStream(ctx, name)
			cancel()
			if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
				w.Fatal(err)
			}
		}
		harness.WaitFor(w, "there is a version again", func() bool { _, ok := w.c.current(); return ok })
	})
}

// fresh replaces the server by one without a store.
func (w *losing) fresh() {
	w.keeps("a fresh server", func() {
		w.c.brokers[0].Kill()
		w.c.wipe(w.c.brokers[0])
		w.c.brokers[0].Start()
	})
}

// backup copies the store of the server, which is down for a moment.
func (w *losing) backup() (dir string) {
	dir = w.TempDir()
	b := w.c.brokers[0]
	b.Kill()
	if err := os.CopyFS(dir, os.DirFS(b.store())); err != nil {
		w.Fatal(err)
	}
	b.Start()
	w.c.settle(w.gates...)
	return dir
}

// restore puts a backup in the place of the store.
func (w *losing) restore(dir string) {
	b := w.c.brokers[0]
	b.Kill()
	w.c.wipe(b)
	if err := os.CopyFS(b.store(), os.DirFS(dir)); err != nil {
		w.Fatal(err)
	}
	b.Start()
}

// restored restores a backup that lacks some edits.
func (w *losing) restored() {
	dir := w.backup()
	w.edits(w.gates[0], 5)
	w.c.settle(w.gates...)
	w.keeps("an older backup restored", func() { w.restore(dir) })
}

// restoredUnseen restores a backup while a gate cannot see it: when that comes back, the server
// has more revisions than the gate knows, but not of the list.
func (w *losing) restoredUnseen() {
	dir := w.backup()
	w.edits(w.gates[0], 5)
	w.c.settle(w.gates...)
	w.keeps("an older backup restored, and filled by others, while a gate was away", func() {
		for _, way := range w.ways {
			way.set(linkCut)
		}
		w.restore(dir)
		ctx, cancel := context.WithTimeout(context.Background(), harness.WorkTimeout)
		defer cancel()
		var kv jetstream.KeyValue
		harness.WaitFor(w, "the bucket", func() (ok bool) {
			var err error
			kv, err = w.c.jetstream().KeyValue(ctx, "spamgate-lists")
			return err == nil
		})
		for i := range 20 {
			if _, err := kv.PutString(ctx, "list.other", fmt.Sprint(i)); err != nil {
				w.Fatal(err)
			}
		}
		for _, way := range w.ways {
			way.set(linkOpen)
		}
	})
}

// oldestFirst replaces the server by a fresh one, to which the gate with the oldest list connects
// first.
func (w *losing) oldestFirst() {
	old := w.ways[2]
	old.set(linkCut)
	w.edits(w.gates[0], 5)
	waitAlike(w, w.gates[:2]...)
	w.keeps("a fresh server, which the oldest list reaches first", func() {
		for _, way := range w.ways {
			way.set(linkCut)
		}
		w.c.brokers[0].Kill()
		w.c.wipe(w.c.brokers[0])
		w.c.brokers[0].Start()
		old.set(linkOpen)
		harness.WaitFor(w, "the oldest list is published", func() bool { current, ok := w.c.current(); return ok && current == w.gates[2].noted() })
		for _, way := range w.ways {
			way.set(linkOpen)
		}
	})
}
