package hashlab

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// parallel runs the pieces of work 0 to n-1 on all cores. Each worker calls worker
// once for the function that runs a piece, which may have memory of its own. The
// result of a piece must depend on its number alone. When ctx ends, no more pieces
// begin, and parallel returns its error.
func parallel(ctx context.Context, n int, worker func() func(piece int)) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			do := worker()
			for ctx.Err() == nil {
				piece := int(next.Add(1)) - 1
				if piece >= n {
					return
				}
				do(piece)
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// piece is how many keys a worker takes at a time.
const piece = 4096

// inPieces is parallel for many small pieces of work, such as hashing a key: a
// worker takes several at a time.
func inPieces(ctx context.Context, n int, worker func() func(i int)) error {
	return parallel(ctx, (n+piece-1)/piece, func() func(int) {
		do := worker()
		return func(p int) {
			for i := p * piece; i < min(n, (p+1)*piece); i++ {
				do(i)
			}
		}
	})
}

// gather runs the jobs 0 to jobs-1 on all cores, and returns their rows in the
// order of the jobs. When ctx ends no more jobs begin, and the rows are those of
// the completed jobs.
func gather[Row any](ctx context.Context, jobs int, job func(i int) (rows []Row, done bool)) []Row {
	results := make([][]Row, jobs)
	parallel(ctx, jobs, func() func(int) {
		return func(i int) {
			if rows, done := job(i); done {
				results[i] = rows
			}
		}
	})
	return slices.Concat(results...)
}

// checkEvery is how many keys pass between two checks of the context: some
// milliseconds of work at most.
const checkEvery = 1 << 12

// stopped reports whether ctx has ended. It checks only at each checkEvery-th i.
func stopped(ctx context.Context, i int) bool {
	return i%checkEvery == 0 && ctx.Err() != nil
}
