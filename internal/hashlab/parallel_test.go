package hashlab

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"spamgate/hashfamily"
)

func TestParallel(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		done := make([]atomic.Int32, n)
		var workers atomic.Int32
		if err := parallel(context.Background(), n, func() func(int) {
			workers.Add(1)
			return func(i int) { done[i].Add(1) }
		}); err != nil {
			t.Fatal(err)
		}
		for i := range done {
			if times := done[i].Load(); times != 1 {
				t.Errorf("n = %d: piece %d was done %d times", n, i, times)
			}
		}
		if int(workers.Load()) > n {
			t.Errorf("n = %d: %d workers", n, workers.Load())
		}
	}
}

func TestParallelStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var begun atomic.Int64
	err := parallel(ctx, 1_000_000, func() func(int) {
		return func(int) {
			switch n := begun.Add(1); {
			case n == 10:
				cancel()
			case n > 10:
				<-ctx.Done()
			}
		}
	})
	if !errors.Is(err, context.Canceled) || begun.Load() < 10 || begun.Load() > 10+int64(runtime.GOMAXPROCS(0)) {
		t.Errorf("%v after %d pieces", err, begun.Load())
	}
}

func TestMeasurePassesErrorsOn(t *testing.T) {
	p := smallExperiment(t, 2000, 1<<10, 11)
	broken := errors.New("broken")
	s := subjectNamed(t, "classic", 11)
	s.make = func(_, m uint64) (hashfamily.Family, error) { return nil, broken }
	if x, err := p.measure(context.Background(), s); !errors.Is(err, broken) || x != nil {
		t.Errorf("a family that can't be made: %v, %v", x, err)
	}
	if x, err := p.measure(cancelled(), subjectNamed(t, Ideal, 11)); !errors.Is(err, context.Canceled) || x != nil {
		t.Errorf("cancelled, ideal: %v, %v", x, err)
	}
	if x, err := p.measure(cancelled(), subjectNamed(t, "classic", 11)); !errors.Is(err, context.Canceled) || x != nil {
		t.Errorf("cancelled: %v, %v", x, err)
	}
}
