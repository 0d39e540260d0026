package hashlab

import "testing"

// TestStreams: each seed and each row of labels has random numbers of its own, also
// where the labels are the same when written one after the other.
func TestStreams(t *testing.T) {
	first := make(map[uint64]string)
	for _, c := range []struct {
		what   string
		seed   uint64
		labels []any
	}{
		{"seed 1", 1, []any{"split", 1, 11}},
		{"seed 2", 2, []any{"split", 1, 11}},
		{"another cut", 1, []any{"split", 11, 1}},
		{"one label", 1, []any{"split111"}},
		{"no label", 1, nil},
		{"an empty label", 1, []any{""}},
	} {
		v := stream(c.seed, c.labels...).Uint64()
		if before, ok := first[v]; ok {
			t.Errorf("%s has the numbers of %s", c.what, before)
		}
		first[v] = c.what
		if again := stream(c.seed, c.labels...).Uint64(); again != v {
			t.Errorf("%s: %d, and again %d", c.what, v, again)
		}
	}
}
