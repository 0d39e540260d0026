package logging

// entry describes one log line: its part of a batch's data.
type entry struct {
	size int

	// text is where the line itself begins, after the fields that the output's
	// protocol puts before it. It ends at the next newline.
	text int

	dropped uint64 // of a notice: the number of lines that it reports
}

// batch holds several entries.
type batch struct {
	data    []byte
	entries []entry
}

func (b *batch) add(data []byte, text int, dropped uint64) {
	b.data = append(b.data, data...)
	b.entries = append(b.entries, entry{len(data), text, dropped})
}

// first returns the first entries that fit into limit bytes together, at least one.
func (b batch) first(limit int) batch {
	size := b.entries[0].size
	n := 1
	for ; n < len(b.entries) && size+b.entries[n].size <= limit; n++ {
		size += b.entries[n].size
	}
	return batch{b.data[:size], b.entries[:n]}
}

// after returns the entries after the first n.
func (b batch) after(n int) batch {
	size := 0
	for _, e := range b.entries[:n] {
		size += e.size
	}
	return batch{b.data[size:], b.entries[n:]}
}
