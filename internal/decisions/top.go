package decisions

import (
	"cmp"
	"context"
	"fmt"
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

// topNames bounds the names that Top counts.
const topNames = 1 << 20

// Top returns the senders, domains, lists or clients with the most decisions that match a Query, since
// a time. A decision with several senders counts for each.
func (r *Reader) Top(ctx context.Context, kind string, since time.Time, limit int, q Query) ([]Ranked, error) {
	names, err := topNamesOf(kind)
	if err != nil {
		return nil, err
	}
	q.Since, q.Before = since, ""
	all := map[string]*Ranked{}
	err = r.Each(ctx, q, func(d Decision) error {
		for _, name := range names(&d) {
			t := all[name]
			if t == nil {
				if len(all) >= topNames {
					continue
				}
				t = &Ranked{Name: name}
				all[name] = t
			}
			t.Count += int64(d.Count)
			if d.Last.After(t.Last) {
				t.Last = d.Last
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ranked := make([]Ranked, 0, len(all))
	for _, t := range all {
		ranked = append(ranked, *t)
	}
	return rank(ranked, limit), nil
}

// rank orders and cuts an answer of Top.
func rank(all []Ranked, limit int) []Ranked {
	slices.SortFunc(all, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(all[:min(max(limit, 0), len(all))])
}

// topNamesOf returns the function that says for what names a decision counts, each once.
func topNamesOf(kind string) (func(*Decision) []string, error) {
	switch kind {
	case TopSenders:
		return func(d *Decision) []string { return unique(slices.Collect(senders(d))) }, nil
	case TopDomains:
		return func(d *Decision) (all []string) {
			for s := range senders(d) {
				all = append(all, domainOf(s))
			}
			return unique(all)
		}, nil
	case TopLists:
		return func(d *Decision) []string { return unique([]string{d.List}) }, nil
	case TopClients:
		return func(d *Decision) []string {
			if d.Client == "" {
				return nil
			}
			return []string{foldClient(d.Client)}
		}, nil
	}
	return nil, fmt.Errorf("unknown kind %q: one of senders, domains, lists, clients", kind)
}

// unique returns the names without empty and repeated ones.
func unique(names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" })
}
