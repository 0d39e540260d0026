package sender

import (
	"slices"
	"strings"
	"testing"
)

// plainKeys is Walk without its tricks: the candidate keys as strings.
func plainKeys(a Address) (keys []string, kinds []Kind) {
	add := func(k Kind, text string) {
		keys, kinds = append(keys, text), append(kinds, k)
	}
	if a.IsNull() {
		add(KindNull, "<>")
		return keys, kinds
	}
	locals := []string{a.Local()}
	content, err := unquote(a.Local())
	if err != nil {
		panic(err)
	}
	for i := 1; i < len(content); i++ {
		if content[i] == '+' {
			locals = append(locals, quote(content[:i]))
			break
		}
	}
	for _, l := range locals {
		add(KindAddress, l+"@"+a.Domain())
	}
	add(KindAtDomain, "@"+a.Domain())
	for d := a.Domain(); !a.IsLiteral(); {
		add(KindDomain, d)
		_, parent, ok := strings.Cut(d, ".")
		if !ok {
			break
		}
		add(KindSubdomains, "*."+parent)
		d = parent
	}
	for _, l := range locals {
		add(KindLocal, l+"@")
	}
	return keys, kinds
}

// walked collects a walk over the given kinds.
func walked(a Address, only KindSet, buf []byte) (keys []string, kinds []Kind, ranks []int) {
	w := a.Walk(buf)
	w.Only(only)
	for k, ok := w.Next(); ok; k, ok = w.Next() {
		keys, kinds, ranks = append(keys, string(k.Text)), append(kinds, k.Kind), append(ranks, int(k.Rank))
	}
	return keys, kinds, ranks
}

// checkWalk holds Walk against its plain twin, whole and with kinds skipped.
func checkWalk(t *testing.T, a Address) {
	t.Helper()
	wantKeys, wantKinds := plainKeys(a)
	for only := range AllKinds + 1 {
		keys, kinds, ranks := walked(a, only, nil)
		i := 0
		for rank, k := range wantKinds {
			if !only.Has(k) {
				continue
			}
			if i >= len(keys) || keys[i] != wantKeys[rank] || kinds[i] != k || ranks[i] != rank {
				t.Errorf("Walk(%q), kinds %06b: %q at ranks %v, want %q at rank %d", a, only, keys, ranks, wantKeys[rank], rank)
				return
			}
			i++
		}
		if i != len(keys) {
			t.Errorf("Walk(%q), kinds %06b: %q, %d too many", a, only, keys, len(keys)-i)
		}
	}
}

func TestWalk(t *testing.T) {
	for _, c := range rows(t, "walk.tsv") {
		a, err := Parse(c[0])
		if err != nil {
			t.Errorf("Parse(%q): %v", c[0], err)
			continue
		}
		want := strings.Split(c[1], "|")
		keys, _, _ := walked(a, AllKinds, make([]byte, 0, 512))
		if !slices.Equal(keys, want) {
			t.Errorf("Walk(%q)\n got %q\nwant %q", c[0], keys, want)
		}
		checkWalk(t, a)
	}
}

// TestWalkDeepest: the deepest domain keeps every parent, down to one label.
func TestWalkDeepest(t *testing.T) {
	a, err := Parse("u@" + strings.Repeat("a.", 127) + "b")
	if err != nil {
		t.Fatal(err)
	}
	checkWalk(t, a)
	keys, _, _ := walked(a, KindSet(0).With(KindDomain), nil)
	if len(keys) != 128 || keys[127] != "b" {
		t.Errorf("%d parents, the last %q", len(keys), keys[len(keys)-1])
	}
}

func TestKindString(t *testing.T) {
	if KindSubdomains.String() != "subdomains" || Kind(99).String() != "unknown" {
		t.Error(KindSubdomains, Kind(99))
	}
}
