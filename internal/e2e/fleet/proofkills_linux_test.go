package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestProofKills kills gates and servers at random moments while all gates edit, one or all at
// once, and deletes the store of one. No acknowledged edit is lost, no list is damaged, and all
// gates are equal at the end.
func TestProofKills(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *cluster{
		"nats-server":     func(t testing.TB) *cluster { return startBrokers(t, 3) },
		"spamgate-fleetd": startOwnBrokers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := fleetSeed(t)
			c := start(t)
			k := &kills{T: t, c: c, r: rand.New(rand.NewPCG(seed, 0)), gates: startFleet(t, same(3, c.urls())...), done: map[string]int{}}
			harness.WaitFor(t, "the buckets are on three servers", c.whole)
			most := count(t, "SPAMGATE_FLEET_KILLS", 2, 100)
			k.run(seed, k.one, func(n int) bool { return n == most })
		})
	}
}

// fleetSeed returns what SPAMGATE_FLEET_SEED says, or another number each time.
func fleetSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("SPAMGATE_FLEET_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SPAMGATE_FLEET_SEED=%d", seed)
	return seed
}

// kills is a fleet in which processes are killed.
type kills struct {
	*testing.T
	c       *cluster
	r       *rand.Rand
	gates   []*member
	scripts []*script
	done    map[string]int // what was killed, and how often
}

// run kills while edits go on, until it was enough, and checks that no edit was lost.
func (k *kills) run(seed uint64, step func(), enough func(n int) bool) {
	k.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var editing sync.WaitGroup
	for i, g := range k.gates {
		s := newScript(g, seed+uint64(i))
		k.scripts = append(k.scripts, s)
		editing.Go(func() {
			for ctx.Err() == nil {
				_, _, _ = s.one() // it may be refused
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	defer editing.Wait()
	defer cancel()
	began := time.Now()
	for n := 0; !enough(n); n++ {
		step()
		for _, g := range k.gates {
			g.mustEntries() // whole
		}
	}
	cancel()
	editing.Wait()
	last := k.c.settle(k.gates...)
	made, refused := k.made()
	k.Logf("%v in %v: %d edits acknowledged, %d not; all gates have sequence %d", k.done, time.Since(began).Round(time.Second), made, refused, last.Sequence)
	for _, g := range k.gates {
		for _, s := range k.scripts {
			s.check(k.T, g)
		}
	}
}

// made returns how many edits were acknowledged, and how many were not.
func (k *kills) made() (made, refused int) {
	for _, s := range k.scripts {
		m, r := s.acknowledged()
		made, refused = made+m, refused+r
	}
	return made, refused
}

// one kills something, starts it again, and waits until edits are made.
func (k *kills) one() {
	k.Helper()
	gate, server := k.gates[k.r.IntN(len(k.gates))], k.c.brokers[k.r.IntN(len(k.c.brokers))]
	what := "gate"
	gates, servers := []*member{gate}, []broker(nil)
	switch n := k.r.IntN(100); {
	case n < 35:
	case n < 60:
		what, gates, servers = "server", nil, []broker{server}
	case n < 70:
		what, gates, servers = "server and its store", nil, []broker{server}
		harness.WaitFor(k, "all servers have all", k.c.whole) // only this one's disk is lost
	case n < 80:
		what, gates, servers = "all servers", nil, k.c.brokers
	case n < 90:
		what, gates = "all gates", k.gates
	default:
		what, gates, servers = "everything", k.gates, k.c.brokers
	}
	k.done[what]++
	k.pause()
	for _, g := range gates {
		g.end()
	}
	for _, s := range servers {
		s.Kill()
	}
	if what == "server and its store" {
		k.c.wipe(server)
	}
	k.pause()
	for _, s := range servers {
		s.Start()
	}
	for _, g := range gates {
		g.start()
	}
	k.goesOn(what)
}

// goesOn waits until edits are made after what happened.
func (k *kills) goesOn(what string) {
	k.Helper()
	before, _ := k.made()
	harness.WaitFor(k, fmt.Sprintf("edits are made after the kill of %s", what), func() bool {
		current, _ := k.made()
		return current > before+5
	})
}

// pause lets some edits be made, or some fail: a random moment of what goes on is met.
func (k *kills) pause() { time.Sleep(time.Duration(k.r.Int64N(int64(400 * time.Millisecond)))) }
