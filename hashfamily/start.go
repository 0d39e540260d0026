package hashfamily

// Start returns where the indices of key start, and the step from each to the next,
// both below M: index i is (a + i·b) mod M. Whoever needs few of the indices can
// go from one to the next without the others.
func (d *Double) Start(key []byte) (a, b uint64) { return d.start(d.sum(key)) }

// Start returns where the indices of key start, and the step from each to the next;
// see [Double.Start].
func (s *Seeded) Start(key []byte) (a, b uint64) { return s.start(s.sum(key)) }
