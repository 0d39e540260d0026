package decisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Kinds of Top.
const (
	TopSenders = "senders" // of the envelope and of the header
	TopDomains = "domains" // of the senders
	TopLists   = "lists"
	TopClients = "clients" // addresses
)

// topKinds are the kinds of terms that Top counts, and the names of a decision that have them.
var topKinds = map[string]struct {
	kind  kind
	names func(*Decision) []string
}{
	TopSenders: {kindSender, func(d *Decision) []string { return slices.Collect(senders(d)) }},
	TopDomains: {kindDomain, func(d *Decision) (all []string) {
		for s := range senders(d) {
			all = append(all, domainOf(s))
		}
		return all
	}},
	TopLists:   {kindList, func(d *Decision) []string { return []string{d.List} }},
	TopClients: {kindClient, func(d *Decision) []string { return []string{foldClient(d.Client)} }},
}

const (
	maxTop = 1000 // names in an answer

	// topTerms bounds the names that are counted at a time: beyond, the rarest are forgotten.
	topTerms = 1 << 20
)

// Top returns the senders, domains, lists or clients with the most decisions that match a Query, since
// a time. A decision with several senders counts for each. Names are counted by a hash of 28 bits, so a
// count may have those of a rare name, too. If there are more than a million names, counts may lack
// those of a time at which the name was among the rarest.
func (r *Reader) Top(ctx context.Context, kind string, since time.Time, limit int, q Query) ([]Ranked, error) {
	top, ok := topKinds[kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind %q: one of senders, domains, lists, clients", kind)
	}
	q.Since = since
	files, err := r.files()
	if err != nil {
		return nil, err
	}
	counts := map[uint64]map[term]*counted{} // by seed
	for _, f := range files {
		c := &counter{kind: top.kind, names: top.names, counts: counts}
		if err := c.count(ctx, r, f, &q); err != nil {
			return nil, fmt.Errorf("history %s: %w", f.name(), err)
		}
	}
	limit = min(max(limit, 0), maxTop)
	byName := map[string]Ranked{}
	for seed, terms := range counts {
		for _, t := range largest(terms, limit) {
			name, last, err := r.name(t, terms[t], seed, top.kind, top.names)
			if err != nil {
				return nil, err
			}
			if name == "" {
				continue // its row is gone
			}
			n := byName[name]
			n.Name, n.Count = name, n.Count+terms[t].n
			if last.After(n.Last) {
				n.Last = last
			}
			byName[name] = n
		}
	}
	all := slices.SortedFunc(maps.Values(byName), func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(limit, len(all))], nil
}

// counted is how often there is a term, and the newest row that has it.
type counted struct {
	n    int64
	file file
	row  int64
}

// counter counts the terms of a kind in one file.
type counter struct {
	*search
	kind   kind
	names  func(*Decision) []string
	counts map[uint64]map[term]*counted
	terms  map[term]*counted
}

// count counts the rows of a file that match a query.
func (c *counter) count(ctx context.Context, r *Reader, file file, q *Query) error {
	c.search = newSearch(r, file, q, place{math.MaxInt64, math.MaxInt64, math.MaxInt64})
	defer c.close()
	if c.done {
		return nil
	}
	if err := c.open(true); err != nil || c.done {
		return skippable(err)
	}
	if c.terms = c.counts[c.f.seed]; c.terms == nil {
		c.terms = map[term]*counted{}
		c.counts[c.f.seed] = c.terms
	}
	for _, s := range c.sections {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := c.section(s); err != nil {
			return skippable(err)
		}
		if len(c.terms) > topTerms {
			forgetRarest(c.terms)
		}
	}
	return skippable(c.merged(ctx))
}

// section counts the rows of a section.
func (c *counter) section(s section) error {
	in := make([]bool, s.count)
	if len(c.clauses) > 0 {
		rows, err := c.candidates(s)
		if err != nil {
			return err
		}
		for _, n := range rows {
			in[n-s.first] = true
		}
	} else {
		for i := range in {
			in[i] = s.first+int64(i) >= c.low && s.first+int64(i) <= c.high
		}
	}
	wanted := func(t term) bool { return t.kind() == c.kind }
	add := func(t term, rows []uint32) {
		n, last := int64(0), int64(0)
		for _, row := range rows {
			if int64(row) < s.count && in[row] {
				n, last = n+1, s.first+int64(row)
			}
		}
		if n > 0 {
			c.add(t, n, last)
		}
	}
	if s.postings != nil {
		return decodePostings(s.postings, wanted, add)
	}
	first, end := term(c.kind<<28), term(c.kind<<28|(1<<28-1))
	buckets, err := c.f.statement(selectBuckets, s.base+first.bucket(int(s.buckets)), s.base+end.bucket(int(s.buckets)))
	if err != nil {
		return err
	}
	defer buckets.Reset()
	for {
		found, err := buckets.Step()
		if err != nil || !found {
			return err
		}
		if err := decodePostings(buckets.Blob(0), wanted, add); err != nil {
			return err
		}
	}
}

// add counts rows with a term.
func (c *counter) add(t term, n, last int64) {
	has := c.terms[t]
	if has == nil {
		has = &counted{}
		c.terms[t] = has
	}
	has.n += n
	if last != 0 {
		has.file, has.row = c.file, last
	}
}

// merged counts what the rows of floods stand for.
func (c *counter) merged(ctx context.Context) error {
	s, err := c.f.statement(selectCounted, c.low, c.high)
	if err != nil {
		return err
	}
	defer s.Reset()
	for {
		found, err := s.Step()
		if err != nil || !found {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		d, err := c.f.get(s.Int(0))
		if err != nil {
			return err
		}
		if !c.query.Match(&d) {
			continue
		}
		for _, name := range unique(c.names(&d)) {
			c.add(newTerm(c.kind, name, c.f.seed), int64(d.Count-1), 0)
		}
	}
}

// largest returns the terms with the highest counts, at most n.
func largest(all map[term]*counted, n int) []term {
	terms := slices.SortedFunc(maps.Keys(all), func(a, b term) int {
		return cmp.Or(cmp.Compare(all[b].n, all[a].n), cmp.Compare(a, b))
	})
	return terms[:min(n, len(terms))]
}

// forgetRarest removes terms with low counts, until at most half of topTerms are left.
func forgetRarest(all map[term]*counted) {
	for most := int64(1); len(all) > topTerms/2; most *= 2 {
		maps.DeleteFunc(all, func(_ term, c *counted) bool { return c.n <= most })
	}
}

// name returns the name of a term, and the time of its newest row; "" if that is gone.
func (r *Reader) name(t term, c *counted, seed uint64, k kind, names func(*Decision) []string) (string, time.Time, error) {
	f, err := r.open(c.file)
	if errors.Is(err, errSkip) {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, err
	}
	defer r.release(f)
	d, err := f.get(c.row)
	if err != nil {
		return "", time.Time{}, skippable(err)
	}
	for _, name := range unique(names(&d)) {
		if newTerm(k, name, seed) == t {
			return name, d.Last, nil
		}
	}
	return "", time.Time{}, nil
}

// unique returns the names without empty and repeated ones.
func unique(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
