package bloom

// Bytes returns the memory that the bitmap takes.
func (f *Filter) Bytes() uint64 { return uint64(len(f.bits)) }

// Bytes returns the memory that bitmap and counters take.
func (c *Counting) Bytes() uint64 { return c.filter.Bytes() + uint64(len(c.counters.packed)) }
