package hashattack

// table finds the numbers that were filed under a state, in the order in which
// they were filed. All rows stand in one array, sorted by bucket, so that a
// look-up reads one short stretch of memory.
type table struct {
	shift uint
	first []uint32 // where each bucket's rows begin; one more than there are buckets
	rows  []row
}

type row struct{ state, number uint32 }

// newTable files the numbers 0 … n-1, number i under states[i].
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
	// Each bucket fills from its end, so that afterwards first is what it was.
	ends := t.first[1:]
	fill := make([]uint32, len(ends))
	copy(fill, ends)
	for i := len(states) - 1; i >= 0; i-- {
		b := t.bucket(states[i])
		fill[b]--
		t.rows[fill[b]] = row{states[i], uint32(i)}
	}
	return t
}

// bucket spreads states by Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
func (t *table) bucket(state uint32) uint32 {
	return uint32(uint64(state*0x9E3779B9) >> t.shift)
}

// near is the rows among which those of state are.
func (t *table) near(state uint32) []row {
	b := t.bucket(state)
	return t.rows[t.first[b]:t.first[b+1]]
}
