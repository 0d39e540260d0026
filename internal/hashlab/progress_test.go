package hashlab

import (
	"context"
	"slices"
	"testing"
	"time"
)

// TestProgressWithinAStep: a step that tells how far it is moves the progress
// between where it begins and where the next one does.
func TestProgressWithinAStep(t *testing.T) {
	var told []float64
	var whats []string
	l := &lab{options: Options{Progress: func(done float64, what string) {
		told, whats = append(told, done), append(whats, what)
	}}}
	halves := func(context.Context) error {
		l.progress.part(1, 2)
		l.progress.part(2, 2)
		return nil
	}
	if err := l.do(context.Background(), []step{{"first", 10, halves}, {"second", 30, halves}}); err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 0.125, 0.25, 0.25, 0.625, 1, 1}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if want := []string{"first", "first", "first", "second", "second", "second", "done"}; !slices.Equal(whats, want) {
		t.Errorf("told of %q, want %q", whats, want)
	}
	silent := &lab{}
	if err := silent.do(context.Background(), []step{{"first", 10, func(context.Context) error { silent.progress.part(1, 2); return nil }}}); err != nil {
		t.Errorf("nobody to be told: %v", err)
	}
}

// TestLongStepsTell: those that take longest say after each piece how far they are.
func TestLongStepsTell(t *testing.T) {
	ctx := context.Background()
	var told []float64
	tell := func(part float64) { told = append(told, part) }
	pieces := func(n, from int) []float64 {
		var want []float64
		for i := range n {
			want = append(want, float64(i+from)/float64(n))
		}
		return want
	}
	z := fullSize{m: 1 << 10, members: []int{20, 30}, queries: 22, seed: 1, progress: tell}
	if _, err := z.measure(ctx, subjectNamed(t, "seeded", 11)); err != nil {
		t.Fatal(err)
	}
	if want := pieces(fullSizeFilters, 1); !slices.Equal(told, want) {
		t.Errorf("filters of full size: %v, want %v", told, want)
	}
	told = nil
	if _, err := z.info(ctx); err != nil {
		t.Fatal(err)
	}
	if want := pieces(fullSizeFilters, 0); !slices.Equal(told, want) {
		t.Errorf("addresses of full size: %v, want %v", told, want)
	}
	told = nil
	measureSpeed(ctx, subjectsNamed(t, "RS"), nil, speedPlan{runs: 10, run: time.Microsecond, progress: tell})
	if want := pieces(10, 0); !slices.Equal(told, want) {
		t.Errorf("speed: %v, want %v", told, want)
	}
}
