package hashlab

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"spamgate/hashfamily"
)

// cancelled returns a context that has ended.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// corpusOf makes n keys.
func corpusOf(name string, n int, key func(i int) string) *Corpus {
	c := &Corpus{Name: name}
	for i := range n {
		c.Keys = append(c.Keys, []byte(key(i)))
	}
	return c
}

// comNames returns names under .com, some 20 bytes long.
func comNames(n int) *Corpus {
	return corpusOf("com", n, func(i int) string { return fmt.Sprintf("%x-shop%d.com", int64(i)*2654435761%1_000_003, i) })
}

// numbers returns sequential decimal numbers.
func numbers(n int) *Corpus {
	return corpusOf("numbers", n, func(i int) string { return fmt.Sprint(10_000_000 + i) })
}

// subjectsNamed returns some of the subjects, for seed 1.
func subjectsNamed(tb testing.TB, names ...string) []hashSubject {
	tb.Helper()
	all := hashSubjects(1)
	some := make([]hashSubject, 0, len(names))
	for _, name := range names {
		i := slices.IndexFunc(all, func(s hashSubject) bool { return s.Name == name })
		if i < 0 {
			tb.Fatalf("no subject %q", name)
		}
		some = append(some, all[i])
	}
	return some
}

// badHash returns a hash in which each measure must find a fault.
func badHash(sum func(key []byte) uint64) []hashSubject {
	return []hashSubject{{Subject: Subject{"bad", KindHash}, bits: 32, sum: sum}}
}

// row returns the only row that is wanted.
func row[Row any](tb testing.TB, rows []Row, wanted func(Row) bool) Row {
	tb.Helper()
	i := slices.IndexFunc(rows, wanted)
	if i < 0 || slices.IndexFunc(rows[i+1:], wanted) >= 0 {
		tb.Fatalf("none of %d rows is wanted, or several are", len(rows))
	}
	return rows[i]
}

// makerOf returns a maker of the family of that name, with k functions if it allows
// any.
func makerOf(tb testing.TB, name string, k int) func(m uint64) (hashfamily.Family, error) {
	tb.Helper()
	spec, err := hashfamily.ParseSpec(name)
	if err != nil {
		tb.Fatal(err)
	}
	if spec.K() != 0 {
		k = spec.K()
	}
	return func(m uint64) (hashfamily.Family, error) {
		return spec.New(hashfamily.Params{M: m, K: k, Key: publicKey[:]})
	}
}
