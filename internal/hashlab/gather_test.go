package hashlab

import (
	"context"
	"encoding/json"
	"runtime"
	"slices"
	"testing"
)

func TestGatherKeepsOrder(t *testing.T) {
	got := gather(context.Background(), 100, func(i int) ([]int, bool) {
		return []int{i, -i}, i%3 != 0
	})
	var want []int
	for i := range 100 {
		if i%3 != 0 {
			want = append(want, i, -i)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := gather(context.Background(), 0, func(int) ([]int, bool) { return nil, true }); got != nil {
		t.Errorf("of no jobs: %v", got)
	}
}

func TestGatherStops(t *testing.T) {
	if got := gather(cancelled(), 5, func(i int) ([]int, bool) { return []int{i}, true }); got != nil {
		t.Errorf("after the end: %v", got)
	}
	// Each worker may be within a job when the context ends, and begins none after.
	ctx, cancel := context.WithCancel(context.Background())
	got := gather(ctx, 1_000_000, func(i int) ([]int, bool) {
		cancel()
		return []int{i}, true
	})
	if len(got) == 0 || len(got) == 1_000_000 {
		t.Errorf("%d jobs were done", len(got))
	}
}

// Where the context has ended no measure gives rows of half the keys.
func TestMeasuresStop(t *testing.T) {
	ctx, c, subjects := cancelled(), numbers(5000), hashSubjects(1)
	if rows := measureCollisions(ctx, c, subjects); rows != nil {
		t.Errorf("collisions: %d rows", len(rows))
	}
	if rows := measureUniformity(ctx, c, subjects); rows != nil {
		t.Errorf("uniformity: %d rows", len(rows))
	}
	if rows := measureAvalanche(ctx, c, subjects, 1, false); rows != nil {
		t.Errorf("avalanche: %d rows", len(rows))
	}
	if rows, err := measureAgreement(ctx, c, []familyMaker{makerOf(t, "classic", 0)}, 1, false); rows != nil || err != nil {
		t.Errorf("agreement: %d rows, %v", len(rows), err)
	}
	if rows, _ := measureSpeed(ctx, subjects, nil, speedPlanOf(false)); rows != nil {
		t.Errorf("speed: %d rows", len(rows))
	}
	for _, s := range subjects {
		if _, done := s.sums(ctx, c.Keys); done {
			t.Errorf("%s hashed on", s.Name)
		}
		if _, done := avalanche(ctx, s, newFlipKeys(c.Keys)); done {
			t.Errorf("%s flipped on", s.Name)
		}
	}
	if _, done := agreement(ctx, newXXH3(64, 2), c.Keys, []int{1, 2}, []int{3}); done {
		t.Error("agreement went on")
	}
}

// The same seed gives the same rows, whatever the number of cores; another seed
// gives others.
func TestMeasuresRepeat(t *testing.T) {
	c := comNames(1500)
	all := func(seed uint64, cores int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		ctx, subjects := context.Background(), hashSubjects(seed)
		agreement, err := measureAgreement(ctx, c, []familyMaker{makerOf(t, "classic", 0), makerOf(t, "seeded", 5)}, seed, false)
		if err != nil {
			t.Fatal(err)
		}
		uniformity := measureUniformity(ctx, c, subjects)
		correctUniformity(uniformity)
		text, err := json.Marshal([]any{
			measureCollisions(ctx, c, subjects), uniformity, measureAvalanche(ctx, c, subjects, seed, false), agreement,
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	item := all(1, 1)
	if item != all(1, 4) {
		t.Error("four cores gave other rows than one")
	}
	if item == all(2, 1) {
		t.Error("two seeds gave the same rows")
	}
}
