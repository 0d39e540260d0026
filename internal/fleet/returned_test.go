package fleet

import (
	"errors"
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
)

// returns starts gates that have a list in several versions, the newest first, and loses what the
// servers have of it. All are stopped.
func returns(t *testing.T, s *fleettest.Server, versions int, changes ...func(*Options)) (gates []*gate) {
	t.Helper()
	for i, change := range changes {
		g := newGate(t, string(rune('a'+i)), s, change)
		if i == 0 {
			g.write("blocked", "edit0@example.net\n")
		}
		g.start()
		gates = append(gates, g)
	}
	equal(t, "blocked", gates...)
	for i := 1; i < versions; i++ {
		gates[len(gates)-i].stop() // it misses the edit
		gates[0].mustAdd("blocked", "edit"+string(rune('0'+i))+"@example.net")
		equal(t, "blocked", gates[:len(gates)-i]...)
	}
	for _, g := range gates {
		g.stop()
	}
	if err := client(t, s).DeleteStream(t.Context(), "KV_"+bucketLists); err != nil {
		t.Fatal(err)
	}
	return gates
}

// forever lets a gate wait very long with edits if the fleet has just got a version back.
func forever(o *Options) { o.times.grace = time.Hour }

// refusesFor checks that a gate takes no edit now, and that all gates have all edits after the newest
// one is back.
func refusesFor(t *testing.T, stale *gate, gates ...*gate) {
	t.Helper()
	if err := stale.tryEdit("blocked", func(old string) string { return old + "late@example.net\n" }); !errors.Is(err, ErrBehind) {
		t.Errorf("an edit of a version that has just come back: %v", err)
	}
	want := gates[0].read("blocked")
	gates[0].start()
	has(t, "blocked", want, gates...)
	stale.mustAdd("blocked", "late@example.net")
	has(t, "blocked", want+"late@example.net\n", gates...)
}

// TestReturnTakesLong lets the version that a stale gate puts back arrive late: it takes no edits until
// others have had the time to put back a newer one.
func TestReturnTakesLong(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	r := newRelay(t, s)
	gates := returns(t, s, 2, nil, func(o *Options) {
		forever(o)
		o.Servers = r.servers()
	})
	stale := gates[1]
	lost := r.lose(losing{question: "PUB $KV." + bucketLists + ".list.blocked", mute: true})
	stale.start()
	<-lost
	mended := time.Now()
	r.mend()
	equal(t, "blocked", stale)
	l, err := stale.list("blocked")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the version is back", func() bool {
		stale.Member.mu.Lock()
		defer stale.Member.mu.Unlock()
		return !l.seeding && l.returned.After(mended)
	})
	refusesFor(t, stale, gates...)
}

// TestReturnOfOther lets a gate see that another one has put back the version that both have.
func TestReturnOfOther(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	gates := returns(t, s, 1, nil, nil, forever)
	gates[0].start()
	equal(t, "blocked", gates[0])
	gates[0].mustAdd("blocked", "edit1@example.net")
	gates[0].stop()
	if err := client(t, s).DeleteStream(t.Context(), "KV_"+bucketLists); err != nil {
		t.Fatal(err)
	}
	gates[1].start()
	equal(t, "blocked", gates[1])
	gates[2].start()
	equal(t, "blocked", gates[1:]...)
	refusesFor(t, gates[2], gates...)
}

// TestReturnOfNewer lets a gate take a version that another one has put back, and that is not the
// newest.
func TestReturnOfNewer(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	gates := returns(t, s, 3, nil, nil, forever)
	gates[1].start()
	equal(t, "blocked", gates[1])
	gates[2].start()
	equal(t, "blocked", gates[1:]...)
	refusesFor(t, gates[2], gates...)
}
