package hashlab

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"spamgate/hashfamily"
)

// What a row of the speed table times.
const (
	oneHash      = "one hash"
	AllIndices   = "all k indices"
	plainLoops   = "plain loops" // all k indices of a classic family, one hash after another
	batchIndices = "batch"       // all k indices of many keys at once, if the family can
)

// speedKeys is the number of keys of each length: too many branches for a branch
// predictor to learn, and few enough bytes for the second-level cache.
const speedKeys = 1024

// speedLengths are the lengths of the keys in bytes: a word, two, an address, a
// long one.
var speedLengths = []int{8, 16, 33, 64}

// speedPlan tells how long to measure speed.
type speedPlan struct {
	runs     int           // of each contender
	run      time.Duration // about the length of a run
	progress progressFunc  // called between the turns, when nothing is timed
}

// speedPlanOf returns the plan of the default and of the full run: with 30
// contenders of four lengths some 4 and 25 seconds. Runs are short, so that most of
// them have no interruption, and many, so that the median is one of those.
func speedPlanOf(full bool) speedPlan {
	if full {
		return speedPlan{runs: 101, run: 2 * time.Millisecond}
	}
	return speedPlan{runs: 31, run: time.Millisecond}
}

// contender is something to time: work hashes all keys of one length, turns times.
type contender struct {
	row   SpeedRow
	work  func(turns int)
	turns int
	times []float64 // ns a key, of each run
}

// measureSpeed times the single hashes and all indices of each family, for random
// keys of some lengths, and the processor's clock rate. The runs of all contenders
// take turns, so that other work of the machine slows all alike. Keys are in the
// cache. It measures throughput, not latency: the processor may overlap the work
// on successive keys.
//
// If ctx ends before each contender had 10 runs, there are no rows.
func measureSpeed(ctx context.Context, subjects []hashSubject, families []hashfamily.Family, plan speedPlan) (rows []SpeedRow, gigahertz float64) {
	all := contenders(subjects, families)
	for i := range all {
		if ctx.Err() != nil {
			return nil, 0
		}
		all[i].calibrate(plan.run)
	}
	clock := newStopwatch()
	for run := range plan.runs {
		plan.progress.part(run, plan.runs)
		clock.time()
		for i := range all {
			if ctx.Err() != nil {
				break
			}
			all[i].time()
		}
	}
	gigahertz = clock.gigahertz()
	for _, c := range all {
		if len(c.times) < leastRuns {
			return nil, gigahertz
		}
		rows = append(rows, c.result(gigahertz))
	}
	return rows, gigahertz
}

// leastRuns is the number of runs that a median and a range need.
const leastRuns = 10

// contenders returns all subjects and families at each length.
func contenders(subjects []hashSubject, families []hashfamily.Family) []contender {
	var all []contender
	keys := make(map[int][][]byte)
	for _, length := range speedLengths {
		keys[length] = randomKeys(speedKeys, length)
	}
	add := func(subject Subject, what string, k int, pass func(keys [][]byte) uint64) {
		for _, length := range speedLengths {
			some := keys[length]
			all = append(all, contender{row: SpeedRow{Subject: subject, What: what, K: k, KeyBytes: length}, work: func(turns int) {
				for range turns {
					pass(some) // the compiler cannot omit the call of an unknown function
				}
			}})
		}
	}
	for _, s := range subjects {
		add(s.Subject, oneHash, 1, s.pass())
	}
	for _, f := range families {
		for _, way := range ways(f) {
			add(Subject{f.Name(), FamilyKind(f.Name())}, way.what, f.K(), way.pass)
		}
	}
	return all
}

// randomKeys returns keys of one length with the characters of lists: lower-case
// letters, digits, dots.
func randomKeys(count, length int) [][]byte {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789.-"
	random := rand.New(rand.NewPCG(uint64(length), 0))
	block := make([]byte, count*length)
	for i := range block {
		block[i] = letters[random.IntN(len(letters))]
	}
	return slices.Collect(slices.Chunk(block, length))
}

// pass returns a function that hashes all keys, with one call each through a
// function value.
func (h hashSubject) pass() func(keys [][]byte) uint64 {
	if h.sum32 != nil {
		return passOf(h.sum32)
	}
	return passOf(h.sum)
}

func passOf[T uint32 | uint64](sum func(key []byte) T) func(keys [][]byte) uint64 {
	return func(keys [][]byte) (all uint64) {
		for _, key := range keys {
			all += uint64(sum(key))
		}
		return all
	}
}

// way is a way to compute all indices of all keys.
type way struct {
	what string
	pass func(keys [][]byte) uint64
}

// ways returns the ways of a family. Each has memory for its results beforehand.
func ways(f hashfamily.Family) []way {
	all := []way{{AllIndices, indicesPass(f)}}
	if classic, ok := f.(*hashfamily.Classic); ok {
		all = append(all, way{plainLoops, plainPass(classic)})
	}
	batch, ok := f.(interface {
		AppendIndicesBatch(dst []uint64, keys [][]byte) []uint64
	})
	if ok {
		buf := make([]uint64, 0, speedKeys*f.K())
		all = append(all, way{batchIndices, func(keys [][]byte) uint64 {
			indices := batch.AppendIndicesBatch(buf, keys)
			return indices[len(indices)-1]
		}})
	}
	return all
}

// indicesPass returns a function that computes them key by key, with one call each
// through the interface.
func indicesPass(f hashfamily.Family) func(keys [][]byte) uint64 {
	buf := make([]uint64, 0, f.K())
	return func(keys [][]byte) (last uint64) {
		for _, key := range keys {
			buf = f.AppendIndices(buf[:0], key)
			last = buf[len(buf)-1]
		}
		return last
	}
}

// plainPass returns a function that computes them by the plain loops, with one call
// for each hash of a key, for comparison with a fused pass and a batch.
func plainPass(f *hashfamily.Classic) func(keys [][]byte) uint64 {
	var hashes []func([]byte) uint32
	for i := range f.K() {
		for _, h := range hashfamily.Hashes() {
			if h.Name == f.HashName(i) {
				hashes = append(hashes, h.Sum)
			}
		}
	}
	buf, m := make([]uint64, 0, f.K()), f.M()
	mask := m - 1 // 0 unless m is a power of two
	if m&mask != 0 {
		mask = 0
	}
	return func(keys [][]byte) (last uint64) {
		for _, key := range keys {
			buf = buf[:0]
			for _, sum := range hashes {
				h := uint64(sum(key))
				if mask != 0 {
					h &= mask
				} else {
					h %= m
				}
				buf = append(buf, h)
			}
			last = buf[len(buf)-1]
		}
		return last
	}
}

// calibrate finds the number of turns that take about as long as a run should. It
// also warms caches and predictors.
func (c *contender) calibrate(run time.Duration) {
	for c.turns = 1; ; c.turns *= 2 {
		begin := time.Now()
		c.work(c.turns)
		if took := time.Since(begin); took >= run/4 {
			c.turns = max(1, int(float64(c.turns)*float64(run)/float64(took)))
			return
		}
	}
}

// time does one run.
func (c *contender) time() {
	begin := time.Now()
	c.work(c.turns)
	c.times = append(c.times, float64(time.Since(begin).Nanoseconds())/float64(c.turns*speedKeys))
}

// result returns the row of all runs.
func (c contender) result(gigahertz float64) SpeedRow {
	row := c.row
	slices.Sort(c.times)
	row.Runs = len(c.times)
	row.NsLeast, row.NsMost = c.times[0], c.times[len(c.times)-1]
	row.NsMedian = median(c.times)
	if row.NsMedian > 0 {
		row.BytesPerCycle = float64(row.KeyBytes) / (row.NsMedian * gigahertz)
	}
	return row
}

// median returns the median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
