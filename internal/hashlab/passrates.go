package hashlab

// passEvery is how many queries there are to each that pass rates are measured
// with: they are near 1/2, and need fewer than the rare false positives.
const passEvery = 4

// passAsked is how often each key is such a query.
func (p *place) passAsked() []uint8 {
	asked := make([]uint8, len(p.keys))
	for _, s := range p.splits {
		for q := 0; q < len(s.queries); q += passEvery {
			asked[s.queries[q]]++
		}
	}
	return asked
}

// pass counts for each index function on how many queries of the i-th split it
// finds its bit set.
func (x *measured) pass(s *split, i int, keys *table, bits bitmap) {
	if x.passes == nil {
		return
	}
	for q := 0; q < len(s.queries); q += passEvery {
		key := s.queries[q]
		for j, index := range keys.row(key) {
			if bits.get(uint64(index)) != 0 {
				x.passes[j].hit(i, key)
			}
		}
	}
	for _, t := range x.passes {
		t.trials[i] = uint64((len(s.queries) + passEvery - 1) / passEvery)
	}
}

// passRows are the rates of each index function.
func (x *measured) passRows(p *place, s Subject) []PassRow {
	if x.passes == nil {
		return nil
	}
	asked := p.passAsked()
	var rows []PassRow
	for j, t := range x.passes {
		row := PassRow{
			Corpus: p.corpus, Family: s.Name, Hash: hashName(x.family, j),
			M: p.m, K: p.k, N: p.loads[p.full].n, Filters: len(p.splits),
			Rate: t.rate(asked),
			Fill: float64(x.ones[p.full]) / float64(p.m) / float64(len(p.splits)),
		}
		row.Hits, row.Trials = t.total()
		rows = append(rows, row)
	}
	return rows
}
