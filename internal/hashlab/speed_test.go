package hashlab

import (
	"context"
	"testing"
	"time"

	"spamgate/hashfamily"
)

// The only thing that is asserted of a time here: that the clock is one that a
// processor may have.
func TestClock(t *testing.T) {
	clock := newStopwatch()
	for range 20 {
		clock.time()
	}
	if ghz := clock.gigahertz(); ghz < 0.01 || ghz > 10 { // an emulated one may be slow
		t.Errorf("%g GHz", ghz)
	}
}

// The chain is what its definition says, step by step.
func TestClockChain(t *testing.T) {
	const a, b, turns = 12345, 0xFF00FF00FF, 7
	x := uint64(1)
	for range turns * chainSteps / 2 {
		x = (x + a) ^ b
	}
	if got := clockChain(turns, 1, a, b); got != x {
		t.Errorf("%#x, want %#x", got, x)
	}
}

func TestMeasureSpeed(t *testing.T) {
	subjects := subjectsNamed(t, "RS", "xxh3")
	families := []hashfamily.Family{newXXH3(1<<20, 3), newIdeal(1, 1<<20, 3)}
	classic, err := makerOf(t, "classic", 0)(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	families = append(families, classic)
	rows, gigahertz := measureSpeed(context.Background(), subjects, families, speedPlan{runs: 10, run: 10 * time.Microsecond})
	want := []struct {
		name, kind, what string
		k                int
	}{
		{"RS", KindHash, oneHash, 1}, {"xxh3", KindControl, oneHash, 1},
		{"xxh3", KindControl, AllIndices, 3}, {"ideal", KindControl, AllIndices, 3}, {"classic", KindFamily, AllIndices, 11},
		{"classic", KindFamily, plainLoops, 11},
	}
	if len(rows) < len(want)*len(speedLengths) || gigahertz <= 0 {
		t.Fatalf("%d rows, %g GHz", len(rows), gigahertz)
	}
	rows = rows[:len(want)*len(speedLengths)] // where the classic family has a batch, that follows
	for i, r := range rows {
		w := want[i/len(speedLengths)]
		if r.Name != w.name || r.Kind != w.kind || r.What != w.what || r.K != w.k || r.KeyBytes != speedLengths[i%len(speedLengths)] {
			t.Errorf("row %d: %+v", i, r)
		}
		if r.Runs < 10 || r.NsLeast <= 0 || r.NsMedian < r.NsLeast || r.NsMost < r.NsMedian || r.BytesPerCycle <= 0 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

// Too few runs make no median and no range.
func TestMeasureSpeedTooFew(t *testing.T) {
	rows, _ := measureSpeed(context.Background(), subjectsNamed(t, "RS"), nil, speedPlan{runs: 9, run: time.Microsecond})
	if rows != nil {
		t.Errorf("%d rows", len(rows))
	}
}

func TestSpeedResult(t *testing.T) {
	c := contender{row: SpeedRow{KeyBytes: 33}, times: []float64{30, 10, 20, 40}}
	if r := c.result(2); r.NsMedian != 25 || r.NsLeast != 10 || r.NsMost != 40 || r.Runs != 4 || r.BytesPerCycle != 33.0/50 {
		t.Errorf("%+v", r)
	}
	c.times = []float64{30, 10, 20}
	if r := c.result(2); r.NsMedian != 20 {
		t.Errorf("%+v", r)
	}
}

// Both ways to hash all keys hash all of them.
func TestPasses(t *testing.T) {
	keys := randomKeys(100, 33)
	for _, s := range hashSubjects(1) {
		want := uint64(0)
		for _, key := range keys {
			if len(key) != 33 {
				t.Fatalf("%q", key)
			}
			want += s.sum(key)
		}
		if got := s.pass()(keys); got != want {
			t.Errorf("%s: %d, want %d", s.Name, got, want)
		}
	}
}

// batchFamily computes indices of many keys, as a family with a batch kernel does.
type batchFamily struct{ hashfamily.Family }

func (f batchFamily) AppendIndicesBatch(dst []uint64, keys [][]byte) []uint64 {
	for _, key := range keys {
		dst = f.AppendIndices(dst, key)
	}
	return dst
}

// Each way to compute a family's indices computes those of the last key too, and
// leaves nothing to allocate while it is timed.
func TestWays(t *testing.T) {
	keys := randomKeys(100, 33)
	create := func(name string, m uint64) hashfamily.Family {
		f, err := makerOf(t, name, 0)(m)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, tt := range []struct {
		family hashfamily.Family
		ways   []string // at least
	}{
		{newXXH3(1<<40, 3), []string{AllIndices}},
		{create("classic", 1<<20), []string{AllIndices, plainLoops}},
		{create("classic:DJB,RS", 1_000_003), []string{AllIndices, plainLoops}},
		{batchFamily{newIdeal(1, 1<<20, 5)}, []string{AllIndices, batchIndices}},
	} {
		want := tt.family.Index(tt.family.K()-1, keys[99])
		all := ways(tt.family)
		for i, way := range all {
			if i < len(tt.ways) && way.what != tt.ways[i] {
				t.Errorf("%s: way %d is %q, want %q", tt.family.Name(), i, way.what, tt.ways[i])
			}
			if got := way.pass(keys); got != want {
				t.Errorf("%s, %s: %d, want %d", tt.family.Name(), way.what, got, want)
			}
			if allocs := testing.AllocsPerRun(100, func() { way.pass(keys) }); allocs != 0 {
				t.Errorf("%s, %s: %v allocations, want 0", tt.family.Name(), way.what, allocs)
			}
		}
		if len(all) < len(tt.ways) {
			t.Errorf("%s has %d ways", tt.family.Name(), len(all))
		}
	}
}
