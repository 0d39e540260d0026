package lists

import (
	"cmp"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/listedit"
)

// mergeLines returns one list that decides about senders as several groups of entries do, of
// which the first one that matches decides: those of a list for the keys of one recipient,
// the most specific first. Exceptions do not leave it to the next group. Skipped is called
// for entries that the list cannot have, so that it matches less.
func mergeLines(groups [][]listfile.Entry, skipped func(e listfile.Entry, what string)) []listfile.Entry {
	merged := map[string]listfile.Entry{}
	var order []listfile.Entry
	add := func(e listfile.Entry) {
		if _, ok := merged[e.Key]; !ok {
			order = append(order, e)
			merged[e.Key] = e
		}
	}
	var locals []listfile.Entry // of the groups before, for a local part at any domain
	for _, group := range groups {
		var some []listfile.Entry
		for _, e := range group {
			if decided(merged, e) {
				continue
			}
			at, ok := localsAt(locals, e)
			if !ok {
				skipped(e, "lines for the same recipients, of local parts at any domain, come before it there, and a table looks for domains first")
				if !e.Exception {
					continue
				}
			}
			some = append(append(some, at...), e)
		}
		for _, e := range some {
			add(e)
		}
		for _, e := range group {
			if e.Kind == sender.KindLocal {
				locals = append(locals, e)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b listfile.Entry) int { return cmp.Compare(a.Line, b.Line) })
	return order
}

// decided reports whether entries that come before decide about all senders that an entry
// matches. One that ends does not, since tables have no ends.
func decided(before map[string]listfile.Entry, e listfile.Entry) bool {
	for _, key := range append([]string{e.Key}, listedit.Covering(e.Key, e.Kind)...) {
		if x, ok := before[key]; ok && (x.Exception || x.Until == 0) {
			return true
		}
	}
	return false
}

// localsAt returns the entries that keep an entry for a domain from deciding about local
// parts that were decided before. It reports false if no entry can: a domain and its
// subdomains have too many addresses.
func localsAt(locals []listfile.Entry, e listfile.Entry) (at []listfile.Entry, ok bool) {
	if e.Kind != sender.KindAtDomain && e.Kind != sender.KindDomain && e.Kind != sender.KindSubdomains {
		return nil, true
	}
	for _, l := range locals {
		if l.Exception == e.Exception {
			continue
		}
		if e.Kind != sender.KindAtDomain {
			return nil, false
		}
		l.Key, l.Kind = strings.TrimSuffix(l.Key, "@")+e.Key, sender.KindAddress
		at = append(at, l)
	}
	return at, true
}
