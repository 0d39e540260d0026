package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestProofPartition parts a gate from the others, with or without the server that it uses: the
// majority goes on, the minority refuses edits and serves mail, and is equal soon after the
// rejoin.
func TestProofPartition(t *testing.T) {
	t.Parallel()
	c := startBrokers(t, 3)
	// The first two gates use servers of the majority; the third one that server which is
	// parted; the fourth all of them, over links of its own.
	var ways []*link
	var urls []string
	for _, b := range c.brokers {
		ways = append(ways, newLink(t, b.address()))
		urls = append(urls, "nats://"+ways[len(ways)-1].addr)
	}
	gates := startFleet(t, c.urls(0, 1), c.urls(0, 1), c.urls(2), urls)
	harness.WaitFor(t, "the buckets are on three servers", c.whole)
	var routes []*link
	for way, l := range c.routes {
		if way[0] == 2 || way[1] == 2 {
			routes = append(routes, l)
		}
	}
	w := &parting{T: t, c: c, gates: gates, lasts: time.Duration(count(t, "SPAMGATE_FLEET_PARTITION", 3, 600)) * time.Second}
	load := sendMail(t, gates...)
	w.part("a gate, cut off", ways, linkCut, gates[3])
	w.part("a server with its gate, cut off", routes, linkCut, gates[2])
	if harness.IfFull(0, 1) == 1 {
		w.part("a gate, packets lost", ways, linkStalled, gates[3])
		w.part("a server with its gate, packets lost", routes, linkStalled, gates[2])
		w.move(ways, routes, gates[3])
	}
	t.Logf("meanwhile %s", load.stop())
}

// move brings a gate to a server which then loses the other servers: the gate finds one that works.
func (w *parting) move(ways, routes []*link, g *member) {
	w.Helper()
	for _, way := range ways[:2] {
		way.set(linkCut)
	}
	harness.WaitFor(w, "an edit over the third server", func() bool {
		w.n++
		return g.edit("add", fmt.Sprintf("move-%d.example", w.n)) == nil
	})
	for _, l := range routes {
		l.set(linkCut)
	}
	for _, way := range ways[:2] {
		way.set(linkOpen)
	}
	began := time.Now()
	harness.WaitFor(w, "an edit over another server", func() bool {
		w.n++
		return g.edit("add", fmt.Sprintf("move-%d.example", w.n)) == nil
	})
	w.Logf("a gate whose server lost the others made an edit over another server after %v", time.Since(began).Round(time.Millisecond))
	for _, l := range routes {
		l.set(linkOpen)
	}
	w.c.settle(w.gates...)
}

// parting is a fleet that is parted now and then.
type parting struct {
	*testing.T
	c     *cluster
	gates []*member
	lasts time.Duration
	n     int
}

// part breaks links for some time, and checks what happens on both sides.
func (w *parting) part(name string, links []*link, state linkState, alone *member) {
	w.Helper()
	before := alone.mustEntries()
	for _, l := range links {
		l.set(state)
	}
	began := time.Now()
	refused := make(chan []time.Duration)
	end := make(chan struct{})
	go func(first int) { refused <- w.refuses(alone, first, end) }(w.n)
	var made, failed int
	var outage, last time.Duration
	for time.Since(began) < w.lasts || made == 0 {
		g := w.gates[w.n%2]
		w.n++
		if err := g.edit("add", fmt.Sprintf("part-%d.example", w.n)); err != nil {
			failed++
			outage = max(outage, time.Since(began)-last)
			continue
		}
		last = time.Since(began)
		made++
		time.Sleep(20 * time.Millisecond) // the proof is not about the load
	}
	close(end)
	times := <-refused
	if current := alone.mustEntries(); len(current) != len(before) {
		w.Errorf("%s: the list of %s has changed while it was parted", name, alone.name)
	}
	lasted := time.Since(began)
	rejoined := time.Now()
	for _, l := range links {
		l.set(linkOpen)
	}
	waitAlike(w, w.gates[0], w.gates[1], alone)
	equal := time.Since(rejoined)
	harness.WaitFor(w, "an edit on the gate", func() bool {
		w.n++
		return alone.edit("add", fmt.Sprintf("back-%d.example", w.n)) == nil
	})
	edits := time.Since(rejoined)
	w.c.settle(w.gates...)
	w.Logf("%s, for %v: the others made %d edits (%d failed, for at most %v); the parted gate refused all, in %s; equal %v after the rejoin, an edit there made %v after it",
		name, lasted.Round(time.Second/10), made, failed, outage.Round(time.Millisecond), quantiles(times), equal.Round(time.Millisecond), edits.Round(time.Millisecond))
}

// refuses makes edits on a parted gate, until end: all must be refused with a reason. It returns
// how long each took.
func (w *parting) refuses(alone *member, first int, end chan struct{}) (took []time.Duration) {
	for i := first; ; i++ {
		began := time.Now()
		err := alone.edit("add", fmt.Sprintf("parted-%d.example", i))
		took = append(took, time.Since(began))
		if err == nil || !strings.Contains(err.Error(), "the edit is refused: the fleet cannot be reached") {
			w.Errorf("%s: an edit of a parted gate: %v", alone.name, err)
		}
		select {
		case <-end:
			return took
		case <-time.After(200 * time.Millisecond):
		}
	}
}
