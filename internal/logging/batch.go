package logging

// entry is what a queue holds for a line: its part of the batch's data.
type entry struct {
	size int

	// text is where the line itself begins, behind what the output's protocol
	// has before it. It ends at the next newline.
	text int

	dropped uint64 // of a notice: how many lines it tells of
}

// batch is some entries, one behind the other.
type batch struct {
	data    []byte
	entries []entry
}

func (b *batch) add(data []byte, text int, dropped uint64) {
	b.data = append(b.data, data...)
	b.entries = append(b.entries, entry{len(data), text, dropped})
}

// first returns as many of the first entries as have at most limit bytes
// together, but one at least.
func (b batch) first(limit int) batch {
	size := b.entries[0].size
	n := 1
	for ; n < len(b.entries) && size+b.entries[n].size <= limit; n++ {
		size += b.entries[n].size
	}
	return batch{b.data[:size], b.entries[:n]}
}

// after returns what is left without the first n entries.
func (b batch) after(n int) batch {
	size := 0
	for _, e := range b.entries[:n] {
		size += e.size
	}
	return batch{b.data[size:], b.entries[n:]}
}
