package decisions

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
)

// A row is found by its terms: a field and a folded value, as a hash of 32 bits. Which rows
// have a term is kept in postings: for a block of rows the terms in order, each with its
// rows. Hashes collide, so a row that is found is compared with the query.
type term uint32

// Kinds of terms. A kind is the first four bits of a term, so that the terms of a kind lie
// together.
type kind uint32

const (
	kindID kind = iota + 1
	kindSender
	kindRecipient
	kindClient
	kindDomain       // of a sender
	kindParent       // a domain above that
	kindRecipientsAt // the domain of a recipient
	kindList
	kindAction
)

func newTerm(k kind, value string, seed uint64) term {
	return term(uint32(k)<<28 | uint32(xxh3.HashStringSeed(value, seed))>>4)
}

func (t term) kind() kind { return kind(t >> 28) }

// posting says that a row, counted from the first of its block, has a term.
type posting struct {
	term term
	row  uint32
}

// appendPostings appends the terms of a decision.
func appendPostings(to []posting, d *Decision, row uint32, seed uint64) []posting {
	add := func(k kind, value string) { to = append(to, posting{newTerm(k, value, seed), row}) }
	add(kindID, foldID(d.ID))
	add(kindAction, d.Action)
	if d.List != "" {
		add(kindList, d.List)
	}
	if d.Client != "" {
		add(kindClient, foldClient(d.Client))
	}
	for s := range senders(d) {
		add(kindSender, s)
		domain := domainOf(s)
		if domain == "" {
			continue
		}
		add(kindDomain, domain)
		for parent := range parents(domain) {
			add(kindParent, parent)
		}
	}
	for _, r := range d.Recipients {
		r = foldAddress(r)
		add(kindRecipient, r)
		if domain := domainOf(r); domain != "" {
			add(kindRecipientsAt, domain)
		}
	}
	return to
}

// maxLabels bounds the labels of a kindParent: names with more have none of their own, or
// hostile names of 127 labels would have 127 terms.
const maxLabels = 10

// parents yields the domains above a domain with at most maxLabels labels.
func parents(domain string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if domain[0] == '[' {
			return
		}
		_, parent, more := strings.Cut(domain, ".")
		for parent = lastLabels(parent); more && parent != "" && yield(parent); {
			_, parent, more = strings.Cut(parent, ".")
		}
	}
}

// lastLabels returns the last maxLabels labels of a domain.
func lastLabels(domain string) string {
	pos := len(domain)
	for range maxLabels {
		if pos = strings.LastIndexByte(domain[:pos], '.'); pos < 0 {
			return domain
		}
	}
	return domain[pos+1:]
}

// clauses returns what a row must have to match: one of the terms of each clause. The first
// clauses are likely to match the fewest rows.
func (q *Query) clauses(seed uint64) [][]term {
	var all [][]term
	must := func(value string, fold func(string) string, kinds ...kind) {
		if value == "" {
			return
		}
		var any []term
		for _, k := range kinds {
			any = append(any, newTerm(k, fold(value), seed))
		}
		all = append(all, any)
	}
	same := func(s string) string { return s }
	must(q.ID, foldID, kindID)
	if q.RecipientDomains == nil || q.own(q.Address) {
		must(q.Address, foldAddress, kindSender, kindRecipient)
	} else {
		must(q.Address, foldAddress, kindSender)
	}
	if q.RecipientDomains == nil || q.own(q.Recipient) {
		must(q.Recipient, foldAddress, kindRecipient)
	} else {
		must(q.Recipient, foldAddress) // matches nothing
	}
	must(q.Sender, foldAddress, kindSender)
	must(q.Client, foldClient, kindClient)
	if q.Domain != "" {
		domain := foldDomain(q.Domain)
		all = append(all, []term{newTerm(kindDomain, domain, seed), newTerm(kindParent, lastLabels(domain), seed)})
	}
	if q.RecipientDomains != nil {
		any := []term{}
		for _, d := range q.RecipientDomains {
			any = append(any, newTerm(kindRecipientsAt, foldDomain(d), seed))
		}
		all = append(all, any)
	}
	must(q.List, same, kindList)
	must(q.Action, same, kindAction)
	return all
}

// sortPostings orders postings by term and row, and removes repeated ones.
func sortPostings(all []posting) []posting {
	slices.SortFunc(all, func(a, b posting) int {
		if a.term != b.term {
			return int(int64(a.term) - int64(b.term))
		}
		return int(int64(a.row) - int64(b.row))
	})
	return slices.Compact(all)
}

// encodePostings encodes sorted postings: each term in 4 bytes, the length of what follows, and the
// distances between its rows.
func encodePostings(to []byte, sorted []posting) []byte {
	var distances []byte
	for len(sorted) > 0 {
		t, last := sorted[0].term, uint32(0)
		distances = distances[:0]
		for len(sorted) > 0 && sorted[0].term == t {
			distances = binary.AppendUvarint(distances, uint64(sorted[0].row-last))
			last, sorted = sorted[0].row, sorted[1:]
		}
		to = binary.BigEndian.AppendUint32(to, uint32(t))
		to = binary.AppendUvarint(to, uint64(len(distances)))
		to = append(to, distances...)
	}
	return to
}

var errPostings = errors.New("damaged postings")

// decodePostings calls f for each wanted term of encoded postings. The rows are valid until f
// returns.
func decodePostings(b []byte, wanted func(term) bool, f func(t term, rows []uint32)) error {
	var rows []uint32
	for len(b) > 0 {
		if len(b) < 5 {
			return errPostings
		}
		t := term(binary.BigEndian.Uint32(b))
		size, n := binary.Uvarint(b[4:])
		if n <= 0 || size > uint64(len(b)-4-n) {
			return errPostings
		}
		distances := b[4+n:][:size]
		b = b[4+n:][size:]
		if !wanted(t) {
			continue
		}
		rows = rows[:0]
		for row := uint32(0); len(distances) > 0; {
			d, n := uint64(distances[0]), 1
			if d >= 0x80 {
				if d, n = binary.Uvarint(distances); n <= 0 {
					return errPostings
				}
			}
			row += uint32(d)
			rows, distances = append(rows, row), distances[n:]
		}
		f(t, rows)
	}
	return nil
}
