package hashlab

import "context"

// gather does the jobs 0 to jobs-1 on all cores, and returns their rows in the
// order of the jobs. When ctx ends no more jobs are begun, and the rows are of
// those that say that they were done.
func gather[Row any](ctx context.Context, jobs int, job func(i int) (rows []Row, done bool)) []Row {
	results := make([][]Row, jobs)
	parallel(ctx, jobs, func() func(int) {
		return func(i int) {
			if rows, done := job(i); done {
				results[i] = rows
			}
		}
	})
	var all []Row
	for _, rows := range results {
		all = append(all, rows...)
	}
	return all
}

// nowAndThen is how many keys pass between two looks at the context: some
// milliseconds of work at most.
const nowAndThen = 1 << 12

// ended reports whether ctx has ended, and looks only at each nowAndThen-th i.
func ended(ctx context.Context, i int) bool {
	return i%nowAndThen == 0 && ctx.Err() != nil
}
