package summary

import (
	"testing"

	"spamgate/internal/hashlab"
)

// TestFuller: a larger load is fuller, and of loads that differ by rounding alone
// that of the larger filter.
func TestFuller(t *testing.T) {
	small, large := hashlab.FPRRow{M: 1 << 16, N: 4129}, hashlab.FPRRow{M: 1 << 20, N: 66_060} // near the capacity at k = 11
	half := hashlab.FPRRow{M: 1 << 20, N: 33_036}
	for _, c := range []struct {
		what string
		a, b hashlab.FPRRow
		want bool
	}{
		{"the larger filter", large, small, true},
		{"the smaller filter", small, large, false},
		{"twice the load in a smaller filter", small, half, true},
		{"half the load in a larger filter", half, small, false},
		{"itself", small, small, false},
	} {
		if got := fuller(c.a, c.b); got != c.want {
			t.Errorf("%s: %t, want %t", c.what, got, c.want)
		}
	}
	if float64(large.N)/float64(large.M) >= float64(small.N)/float64(small.M) {
		t.Error("by the plain numbers the larger filter is fuller: rounding is not looked at")
	}
}
