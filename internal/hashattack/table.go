package hashattack

import "slices"

// table is a hash table from states to numbers. All rows are in one array, sorted
// by bucket and then by number, so that a lookup reads a short piece of memory.
type table struct {
	shift uint
	first []uint32 // index of each bucket's first row, and the number of rows
	rows  []row
}

type row struct{ state, number uint32 }

// newTable returns the table of the numbers 0 … n-1, number i under states[i].
func newTable(states []uint32) *table {
	t := &table{shift: 32}
	for t.shift > 4 && len(states)>>(32-t.shift) > 0 {
		t.shift--
	}
	t.first = make([]uint32, 1<<(32-t.shift)+1)
	for _, s := range states {
		t.first[t.bucket(s)+1]++
	}
	for i := range t.first[1:] {
		t.first[i+1] += t.first[i]
	}
	t.rows = make([]row, len(states))
	fill := slices.Clone(t.first[1:]) // each bucket is filled from its end
	for i := len(states) - 1; i >= 0; i-- {
		b := t.bucket(states[i])
		fill[b]--
		t.rows[fill[b]] = row{states[i], uint32(i)}
	}
	return t
}

// bucket returns the bucket of a state, by Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
func (t *table) bucket(state uint32) uint32 {
	return uint32(uint64(state*0x9E3779B9) >> t.shift)
}

// near returns the rows of the state's bucket.
func (t *table) near(state uint32) []row {
	b := t.bucket(state)
	return t.rows[t.first[b]:t.first[b+1]]
}
