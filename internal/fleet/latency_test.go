package fleet

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/fleet/fleettest"
)

// TestLatency measures how long an edit takes, and how long until all of five gates have it in
// their files, on three servers. It runs with SPAMGATE_FLEET_MEASURE=1.
func TestLatency(t *testing.T) {
	if os.Getenv("SPAMGATE_FLEET_MEASURE") == "" {
		t.Skip("SPAMGATE_FLEET_MEASURE is not set")
	}
	for _, n := range []int{100, 20_000} {
		t.Run(fmt.Sprint(n, " entries"), func(t *testing.T) {
			servers := fleettest.Cluster(t, 3)
			var gates []*gate
			for i := range 5 {
				g := newGate(t, fmt.Sprintf("g%d", i), servers[i%3], func(o *Options) { o.times = times{} })
				if i == 0 {
					g.write("blocked", noise(n))
				}
				g.start()
				gates = append(gates, g)
				equal(t, "blocked", gates...)
			}
			var edit, all []time.Duration
			for i := range 100 {
				g := gates[i%len(gates)]
				line := fmt.Sprintf("edit%d@example.net", i)
				began := time.Now()
				g.mustAdd("blocked", line)
				made := time.Now()
				eventually(t, "all have it", func() bool {
					return !slices.ContainsFunc(gates, func(g *gate) bool { return !strings.HasSuffix(g.read("blocked"), line+"\n") })
				})
				edit, all = append(edit, made.Sub(began)), append(all, time.Since(made))
			}
			slices.Sort(edit)
			slices.Sort(all)
			t.Logf("an edit: p50 %v, p99 %v; until all have it: p50 %v, p99 %v", edit[50], edit[98], all[50], all[98])

			var wg sync.WaitGroup
			began := time.Now()
			for _, g := range gates[:3] {
				wg.Go(func() {
					for i := range 100 {
						if err := g.add("blocked", fmt.Sprintf("%s-%d@example.org", g.o.Name, i)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			took := time.Since(began)
			v := equal(t, "blocked", gates...)
			conflicts := int64(0)
			for _, g := range gates {
				conflicts += g.Status().Conflicts
			}
			t.Logf("three gates, 100 edits each at once: %v, %d conflicts; sequence %d, equal after %v", took, conflicts, v.Sequence, time.Since(began)-took)
		})
	}
}

// TestMembersCurve measures what many members cost, at rest and with a change a second, in one
// process with their server: the figures are those of all together, by the number of members. It
// runs with SPAMGATE_FLEET_MEASURE=1.
func TestMembersCurve(t *testing.T) {
	if os.Getenv("SPAMGATE_FLEET_MEASURE") == "" {
		t.Skip("SPAMGATE_FLEET_MEASURE is not set")
	}
	const seconds = 10
	s := fleettest.Start(t, nil)
	var gates []*gate
	for _, n := range []int{1, 25, 50, 100, 200} {
		for len(gates) < n {
			g := newGate(t, fmt.Sprintf("g%d", len(gates)), s, func(o *Options) { o.times = times{} })
			g.start()
			gates = append(gates, g)
		}
		equal(t, "blocked", gates...)
		cpu := cpuTime(t)
		in, out := s.Bytes()
		time.Sleep(seconds * time.Second)
		rest := cpuTime(t) - cpu
		restIn, restOut := s.Bytes()
		cpu = cpuTime(t)
		var last time.Duration
		tick := time.NewTicker(time.Second)
		for i := range seconds {
			<-tick.C
			gates[i%n].mustAdd("blocked", fmt.Sprintf("m%d-%d@example.net", n, i))
			began := time.Now()
			equal(t, "blocked", gates...)
			last = max(last, time.Since(began))
		}
		tick.Stop()
		busy := cpuTime(t) - cpu
		nowIn, nowOut := s.Bytes()
		t.Logf("%d members: at rest %v of CPU a second, %d bytes/s in, %d out; with a change a second %v, %d in, %d out; all have it after at most %v",
			n, rest/seconds, (restIn-in)/seconds, (restOut-out)/seconds, busy/seconds, (nowIn-restIn)/seconds, (nowOut-restOut)/seconds, last)
	}
}

// TestTransfer measures what edits of a list of a million entries send to and from the server, for
// two gates. It runs with SPAMGATE_FLEET_MEASURE=1.
func TestTransfer(t *testing.T) {
	if os.Getenv("SPAMGATE_FLEET_MEASURE") == "" {
		t.Skip("SPAMGATE_FLEET_MEASURE is not set")
	}
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), newGate(t, "b", s, nil)
	a.write("blocked", noise(1_000_000))
	for _, g := range []*gate{a, b} {
		g.start()
		equal(t, "blocked", g)
	}
	measure := func(what string, do func()) {
		in, out := s.Bytes()
		began := time.Now()
		do()
		equal(t, "blocked", a, b)
		nowIn, nowOut := s.Bytes()
		t.Logf("%s: %d bytes to the server, %d from it, %v", what, nowIn-in, nowOut-out, time.Since(began).Round(time.Millisecond))
	}
	measure("an edit of 100 entries", func() {
		if err := a.edit("blocked", func(old string) string { return old + noise(100) }); err != nil {
			t.Fatal(err)
		}
	})
	measure("100 edits of an entry", func() {
		for i := range 100 {
			a.mustAdd("blocked", fmt.Sprintf("%d@example.net", i))
		}
	})
}

// cpuTime returns the processor time that this process has used.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
