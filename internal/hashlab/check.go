package hashlab

import "fmt"

// Check returns an error if a report that was read cannot be one of [Run]: if it
// measured nothing, or if a matrix has not the size that its row tells.
func (r *Report) Check() error {
	if r.Manifest.Go == "" {
		return fmt.Errorf("no manifest of a run")
	}
	for _, a := range r.Agreement {
		if !square(a.Same, len(a.Names)) || !square(a.Kappa, len(a.Names)) {
			return fmt.Errorf("agreement of %s over %s: no matrix of %d functions", a.Family, a.Corpus, len(a.Names))
		}
	}
	for _, a := range r.Avalanche {
		for _, row := range a.Flips {
			if len(row) != len(a.Flips[0]) || len(row) == 0 || len(row) > 64 || len(a.Flips) > 8*avalancheBytes {
				return fmt.Errorf("avalanche of %s over %s: no matrix of at most %d by 64 bits", a.Name, a.Corpus, 8*avalancheBytes)
			}
		}
	}
	for _, c := range r.Collisions {
		if c.Bits < 1 || c.Bits > 64 || c.Keys < 1 {
			return fmt.Errorf("collisions of %s over %s: %d bits, %d keys", c.Name, c.Corpus, c.Bits, c.Keys)
		}
	}
	for _, f := range r.FPR {
		if f.M < 1 || f.K < 1 || f.N < 1 {
			return fmt.Errorf("rate of %s over %s: m = %d, k = %d, n = %d", f.Name, f.Corpus, f.M, f.K, f.N)
		}
	}
	return nil
}

// square reports whether a matrix has n rows of n numbers.
func square(matrix [][]float64, n int) bool {
	for _, row := range matrix {
		if len(row) != n {
			return false
		}
	}
	return len(matrix) == n
}
