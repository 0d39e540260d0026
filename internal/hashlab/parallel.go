package hashlab

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel does the pieces 0 to n-1 on all cores. Each worker calls worker once
// for what does a piece, which may so have memory of its own. What a piece finds
// must depend on its number alone. When ctx ends, no more pieces are begun, and
// its error is returned.
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

// inPieces is parallel for 0 to n-1 that are too little work to be taken one by
// one, such as hashing a key.
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
