package rhsbl

import (
	"crypto/md5"
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// TestParents compares with a plain map of the names above each entry.
func TestParents(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	label := func() string { return fmt.Sprintf("l%d", rnd.IntN(30)) }
	var lines []string
	above := map[string]bool{}
	for range 3000 {
		name := label() + "." + label() + "." + label() + ".example"
		for i, c := range name {
			if c == '.' {
				above[name[i+1:]] = true
			}
		}
		lines = append(lines, []string{"", "@", "*.", "."}[rnd.IntN(4)]+name)
	}
	lines = append(lines, "user@not.above.test", "local@", "@[192.0.2.1]")
	lists, _ := openStore(t, block("blocked", strings.Join(lines, "\n")))
	seg, key, _, _ := lists.Set().Index("blocked")
	p, err := newParents(t.Context(), seg, key)
	if err != nil {
		t.Fatal(err)
	}
	for name := range above {
		if !p.mayContain(key.Hash([]byte(name))) {
			t.Errorf("nothing is said to be below %s", name)
		}
	}
	wrong, asked := 0, 20000
	for i := range asked {
		if p.mayContain(key.Hash(fmt.Appendf(nil, "absent%d.example", i))) {
			wrong++
		}
	}
	if wrong > asked/100 {
		t.Errorf("%d of %d names are wrongly said to have some below", wrong, asked)
	}
	if n := p.filter.Keys(); n > uint64(len(above)+len(lines)) {
		t.Errorf("%d keys for %d names", n, len(above))
	}
}

// TestDistinct: more hashes than there is room for at first, most of them several times.
func TestDistinct(t *testing.T) {
	var d distinct
	rnd := rand.New(rand.NewPCG(3, 4))
	want := map[uint64]bool{}
	for range 5 * minDistinct {
		h := rnd.Uint64N(3 * minDistinct)
		want[h] = true
		d.add(h)
	}
	got := d.sorted()
	if len(got) != len(want) || !slices.IsSorted(got) {
		t.Errorf("%d hashes, want %d", len(got), len(want))
	}
}

// TestHashes finds every address by both sums, and nothing else.
func TestHashes(t *testing.T) {
	const n = 5000
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "user%d@example.com\nuser%d@\nd%d.example\n", i, i, i)
	}
	lists, _ := openStore(t, block("blocked", lines.String()))
	seg, _, _, _ := lists.Set().Index("blocked")
	h, err := newHashes(t.Context(), seg)
	if err != nil || len(h.sha1) != n || len(h.md5) != n {
		t.Fatal(len(h.sha1), len(h.md5), err)
	}
	for i := range n {
		for address, want := range map[string]string{
			fmt.Sprintf("user%d@example.com", i):  fmt.Sprintf("user%d@example.com", i),
			fmt.Sprintf("user%d@", i):             "",
			fmt.Sprintf("d%d.example", i):         "",
			fmt.Sprintf("other%d@example.com", i): "",
		} {
			s, m := sha1.Sum([]byte(address)), md5.Sum([]byte(address))
			for _, sum := range [][]byte{s[:], m[:]} {
				if got, err := h.find(sum); got != want || err != nil {
					t.Fatalf("%s by %x: %q, %v", address, sum, got, err)
				}
			}
		}
	}
	// The index has but the first bits: the whole sum decides.
	s := sha1.Sum([]byte("user1@example.com"))
	s[19]++
	if got, _ := h.find(s[:]); got != "" {
		t.Errorf("another sum finds %s", got)
	}
}

// TestIndexKept: only what has changed is indexed again, and nothing for a list that no
// setting serves.
func TestIndexKept(t *testing.T) {
	lists, dir := openStore(t, block("first", "a@one.example\n"), block("second", "b@two.example\n"),
		testList{store.List{Name: "from", Action: verdict.Reject, Stages: verdict.Header}, "c@three.example\n"},
		testList{store.List{Name: "allowed", Type: blocklist.Allow}, "d@four.example\n"})
	settings := zonesOf()
	s := newServer(t, lists, settings)
	before := s.index.Load()
	if len(before.lists) != 3 || before.list("from") != nil || before.list("allowed").parents != nil || before.list("first").parents == nil {
		t.Fatalf("%+v", before.lists)
	}
	writeFile(t, filepath.Join(dir, "second"), "b@two.example\nx@two.example\n")
	if err := lists.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitIndexed(t)
	after := s.index.Load()
	if after.list("first").hashes != before.list("first").hashes || after.list("first").parents != before.list("first").parents {
		t.Error("the list that has not changed was indexed again")
	}
	if after.list("second").hashes == before.list("second").hashes {
		t.Error("the list that has changed was not")
	}
	for _, name := range namesOf("#x@two.example.hash.test") {
		if got := said(s.ask(t, newQuestion(name, dns.TypeA))); got != "NOERROR 127.0.0.2" {
			t.Errorf("%s: %s", name, got)
		}
	}

	// A list whose only stage is header counts once it is named.
	settings.Lists = []string{"from"}
	if err := s.Apply(settings); err != nil {
		t.Fatal(err)
	}
	s.waitIndexed(t)
	if x := s.index.Load(); len(x.lists) != 1 || x.list("from") == nil {
		t.Errorf("%+v", x.lists)
	}
	for _, name := range namesOf("#c@three.example.hash.test") {
		if got := said(s.ask(t, newQuestion(name, dns.TypeA))); got != "NOERROR 127.0.0.2" {
			t.Errorf("%s: %s", name, got)
		}
	}
	settings.HashedZone = ""
	if err := s.Apply(settings); err != nil {
		t.Fatal(err)
	}
	s.waitIndexed(t)
	if x := s.index.Load(); x.list("from").hashes != nil {
		t.Error("hashes without a zone")
	}
}

// TestNotIndexed: while the index is not that of the lists, names that are not listed exist,
// and hashes are not answered before there is one.
func TestNotIndexed(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\nuser@one.example\n"))
	s := newServer(t, lists, zonesOf())
	s.index.Store(nil)
	for name, want := range map[string]string{
		"spam.example.bl.test":                      "NOERROR 127.0.0.2",
		"clean.example.bl.test":                     "NOERROR SOA",
		namesOf("#user@one.example.hash.test")[0]:   "SERVFAIL",
		namesOf("#nobody@one.example.hash.test")[0]: "SERVFAIL",
		"no-hash.hash.test":                         "NXDOMAIN SOA",
	} {
		if got := said(s.ask(t, newQuestion(name, dns.TypeA))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestPartOfAnIndex: an index that lacks a list rules no name out.
func TestPartOfAnIndex(t *testing.T) {
	lists, _ := openStore(t, testList{store.List{Name: "blocked", Action: verdict.Reject}, "a.listed.example\n"})
	s := newServer(t, lists, zonesOf())
	if st := s.state.Load(); s.mayHaveBelow(st, "clean.example") || !s.mayHaveBelow(st, "listed.example") {
		t.Fatal("the index rules out the wrong names")
	}
	part := *s.index.Load()
	part.whole = false
	s.index.Store(&part)
	if !s.mayHaveBelow(s.state.Load(), "clean.example") {
		t.Error("a part of the index rules out a name")
	}
}

// TestAllowedInTheEnvelope: a domain that an allow list lets in is not listed by an entry for
// headers.
func TestAllowedInTheEnvelope(t *testing.T) {
	lists, _ := openStore(t,
		testList{store.List{Name: "allowed", Type: blocklist.Allow, Stages: verdict.Envelope}, "good.example\n"},
		testList{store.List{Name: "headers", Action: verdict.Reject, Stages: verdict.Header}, "good.example\nbad.example\n"})
	settings := zonesOf()
	settings.Lists = []string{"allowed", "headers"}
	s := newServer(t, lists, settings)
	if st := s.state.Load(); s.findDomain(st, "good.example").code != 0 || s.findDomain(st, "bad.example").code != 2 {
		t.Errorf("%+v, %+v", s.findDomain(st, "good.example"), s.findDomain(st, "bad.example"))
	}
}
