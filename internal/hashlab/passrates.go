package hashlab

// passInterval is how many queries there are to each one that counts for pass
// rates: these are near 1/2, and need fewer queries than rare false positives.
const passInterval = 4

// passAsked returns how often each key is such a query.
func (p *experiment) passAsked() []uint8 {
	asked := make([]uint8, len(p.keys))
	for _, s := range p.splits {
		for q := 0; q < len(s.queries); q += passInterval {
			asked[s.queries[q]]++
		}
	}
	return asked
}

// pass counts for each index function the queries of the i-th split whose bit is
// set.
func (x *measurement) pass(s *split, i int, keys *table, bits bitmap) {
	if x.passes == nil {
		return
	}
	for q := 0; q < len(s.queries); q += passInterval {
		key := s.queries[q]
		for j, index := range keys.row(key) {
			if bits.get(uint64(index)) != 0 {
				x.passes[j].hit(i, key)
			}
		}
	}
	for _, t := range x.passes {
		t.trials[i] = uint64((len(s.queries) + passInterval - 1) / passInterval)
	}
}

// passRows returns the rates of each index function.
func (x *measurement) passRows(p *experiment, s Subject) []PassRow {
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
