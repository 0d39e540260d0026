package segment

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var testKey = Key{1, 2, 3, 4}

// build makes a segment of entries, with as many adders as asked for.
func build(tb testing.TB, path string, o BuildOptions, adders int, entries []Entry) *Segment {
	tb.Helper()
	if o.Key == nil {
		o.Key = &testKey
	}
	if o.Dir == "" {
		o.Dir = tb.TempDir()
	}
	b := NewBuilder(o)
	var wg sync.WaitGroup
	for part := range adders {
		wg.Go(func() {
			a := b.Adder()
			for i := part; i < len(entries); i += adders {
				if err := a.Add(entries[i]); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s, err := b.Finish(tb.Context(), path, Header{Meta: []byte("meta")})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// randomEntries returns entries of which some have one key.
func randomEntries(r *rand.Rand, n int) []Entry {
	comments := []string{"", "", "", "spam", "Wörter mit Ümlauten – 列表", "\x00\xff no UTF-8", strings.Repeat("long ", 300)}
	entries := make([]Entry, n)
	for i := range entries {
		e := Entry{
			Key:  fmt.Sprintf("%d.example", r.IntN(max(n-n/10, 1))),
			Kind: uint8(r.IntN(markerKind)), Exception: r.IntN(10) == 0, Defer: r.IntN(5) == 0,
			File: r.IntN(300), Line: 1 + r.IntN(3)*n + i, // no two have the same
		}
		e.Reason, e.Note = comments[r.IntN(len(comments))], comments[r.IntN(len(comments))]
		switch r.IntN(20) {
		case 0:
			e.Until = 1 + r.Int64N(math.MaxInt64)
		case 1:
			e.Until = 1 + r.Int64N(3)
		case 2:
			e.Reason = fmt.Sprint("reason ", i)
		case 3:
			e.Key += strings.Repeat("x", r.IntN(MaxKey-30))
		}
		entries[i] = e
	}
	if n > 10 {
		entries[0].Key = ""
		entries[1].Line, entries[1].File = math.MaxInt, math.MaxInt
		entries[2].Key = strings.Repeat("k", MaxKey)
		entries[3].Reason, entries[3].Note = strings.Repeat("r", MaxComment), ""
	}
	return entries
}

// stays is the plain twin of what a segment does with two entries of one key.
func stays(old, e Entry) Entry {
	end := func(e Entry) int64 {
		if e.Until == 0 {
			return math.MaxInt64
		}
		return e.Until
	}
	switch {
	case old.Exception != e.Exception:
		if e.Exception {
			return e
		}
		return old
	case end(old) != end(e):
		if end(e) > end(old) {
			return e
		}
		return old
	case old.File != e.File:
		if e.File < old.File {
			return e
		}
		return old
	case e.Line < old.Line:
		return e
	}
	return old
}

// plain is a segment as a map.
func plain(entries []Entry) map[string]Entry {
	m := map[string]Entry{}
	for _, e := range entries {
		if old, ok := m[e.Indexed()]; ok {
			e = stays(old, e)
		}
		m[e.Indexed()] = e
	}
	return m
}

// check compares everything that a segment says with its plain twin.
func check(t *testing.T, s *Segment, entries []Entry) {
	t.Helper()
	want := plain(entries)
	var exceptions uint64
	var kinds uint8
	var next int64
	recipients := map[string]bool{}
	for key, e := range want {
		got, ok, err := s.Lookup(testKey.Hash([]byte(key)), []byte(key))
		if err != nil || !ok || got != e {
			t.Fatalf("Lookup(%.40q) = %.300v, %v, %v; want %.300v", key, got, ok, err, e)
		}
		if ok, err := s.Has(testKey.Hash([]byte(key)), []byte(key)); err != nil || !ok {
			t.Fatalf("Has(%.40q) = %v, %v", key, ok, err)
		}
		if e.For != "" {
			recipients[e.For] = true
		}
		if e.Exception {
			exceptions++
		}
		if e.Until != 0 && (next == 0 || e.Until < next) {
			next = e.Until
		}
		kinds |= 1 << e.Kind
		for _, absent := range []string{key + "?", "." + key} {
			if _, ok, err := s.Lookup(testKey.Hash([]byte(absent)), []byte(absent)); err != nil || ok {
				t.Fatalf("Lookup(%.40q) of an absent key: %v, %v", absent, ok, err)
			}
			if ok, err := s.Has(testKey.Hash([]byte(absent)), []byte(absent)); err != nil || ok {
				t.Fatalf("Has(%.40q) of an absent key: %v, %v", absent, ok, err)
			}
		}
	}
	if s.Len() != uint64(len(want)) || s.Duplicates() != uint64(len(entries)-len(want)) {
		t.Errorf("%d entries, %d duplicates; want %d, %d", s.Len(), s.Duplicates(), len(want), len(entries)-len(want))
	}
	if s.Exceptions() != exceptions || s.Kinds() != kinds || s.NextUntil() != next {
		t.Errorf("exceptions %d, kinds %b, next %d; want %d, %b, %d", s.Exceptions(), s.Kinds(), s.NextUntil(), exceptions, kinds, next)
	}
	var records []Record
	if err := s.Records(func(r Record) bool { records = append(records, r); return true }); err != nil {
		t.Fatal(err)
	}
	if len(records) != len(want) {
		t.Errorf("Records gives %d entries, want %d", len(records), len(want))
	}
	for _, r := range records {
		if r != want[r.Indexed()] {
			t.Errorf("Records gives %.300v, want %.300v", r, want[r.Indexed()])
		}
	}
	ordered := slices.IsSortedFunc(records, func(p, q Record) int {
		if a, b := testKey.Hash([]byte(p.Indexed())), testKey.Hash([]byte(q.Indexed())); a < b {
			return -1
		} else if a > b {
			return 1
		}
		return strings.Compare(p.Indexed(), q.Indexed())
	})
	if !ordered {
		t.Error("Records is out of order")
	}
	checkMarkers(t, s, recipients)
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 10, 100, 1000, 20_000} {
		for _, memory := range []int{0, 1} {
			for _, named := range []bool{false, true} {
				t.Run(fmt.Sprintf("n=%d,memory=%d,named=%v", n, memory, named), func(t *testing.T) {
					entries := randomEntries(r, n)
					path := ""
					if named {
						path = filepath.Join(t.TempDir(), "list.seg")
					}
					s := build(t, path, BuildOptions{Memory: memory}, 1+r.IntN(4), entries)
					check(t, s, entries)
					if !named {
						return
					}
					opened, err := mapPath(path, &testKey)
					if err != nil {
						t.Fatal(err)
					}
					check(t, opened, entries)
					if string(opened.Header().Meta) != "meta" || opened.Digest() != s.Digest() {
						t.Error("the header or the digest is another after Open")
					}
				})
			}
		}
	}
}

// TestCollisions gives every key one of three hashes.
func TestCollisions(t *testing.T) {
	hash := func(key []byte) uint64 { return uint64(len(key)%3) << 62 }
	b := NewBuilder(BuildOptions{Key: &testKey, Dir: t.TempDir()})
	b.hash = hash
	a := b.Adder()
	entries := randomEntries(rand.New(rand.NewPCG(15, 16)), 3000)
	for _, e := range entries {
		if err := a.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Finish(t.Context(), "", Header{})
	if err != nil {
		t.Fatal(err)
	}
	want := plain(entries)
	for key, e := range want {
		got, ok, err := s.Lookup(hash([]byte(key)), []byte(key))
		if err != nil || !ok || got != e {
			t.Fatalf("Lookup(%.40q) = %.300v, %v, %v; want %.300v", key, got, ok, err, e)
		}
	}
	if s.Len() != uint64(len(want)) {
		t.Errorf("%d entries, want %d", s.Len(), len(want))
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestScan(t *testing.T) {
	entries := randomEntries(rand.New(rand.NewPCG(17, 18)), 5000)
	s := build(t, "", BuildOptions{}, 2, entries)
	var hashes []uint64
	for key := range plain(entries) {
		hashes = append(hashes, testKey.Hash([]byte(key)))
	}
	slices.Sort(hashes)
	last := len(hashes) - 1
	for _, c := range [][2]uint64{
		{0, math.MaxUint64}, {0, 0}, {math.MaxUint64, math.MaxUint64}, {1 << 63, math.MaxUint64}, {1 << 60, 1 << 62},
		{hashes[10], hashes[10]}, {hashes[0], hashes[last]}, {hashes[0] + 1, hashes[last] - 1}, {hashes[900] + 1, hashes[901] - 1},
		{5, 4},
	} {
		var want []uint64
		for _, h := range hashes {
			if c[0] <= h && h <= c[1] {
				want = append(want, h)
			}
		}
		var got []uint64
		err := s.Scan(c[0], c[1], func(hash uint64, key []byte) bool {
			if testKey.Hash(key) != hash {
				t.Errorf("%q has not the hash %x", key, hash)
			}
			got = append(got, hash)
			return true
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Scan of %x gives %d keys, want %d: %v", c, len(got), len(want), err)
		}
	}
	n := 0
	if err := s.Scan(0, math.MaxUint64, func(uint64, []byte) bool { n++; return n < 7 }); err != nil || n != 7 {
		t.Errorf("Scan went on to %d keys: %v", n, err)
	}
}

// TestScanFor finds the keys that Scan finds and that contain a text.
func TestScanFor(t *testing.T) {
	entries := randomEntries(rand.New(rand.NewPCG(17, 18)), 5000)
	s := build(t, "", BuildOptions{}, 2, entries)
	for _, text := range []string{entries[7].Key, entries[7].Key[1:], ".", "e", "absent from all of them"} {
		var got, want []string
		collect := func(keys *[]string) func(key []byte) bool {
			return func(key []byte) bool {
				*keys = append(*keys, string(key))
				return true
			}
		}
		for _, c := range [][2]uint64{{0, 1<<63 - 1}, {1 << 63, math.MaxUint64}} {
			err := s.Scan(c[0], c[1], func(_ uint64, key []byte) bool {
				return !strings.Contains(string(key), text) || collect(&want)(key)
			})
			if err := errors.Join(err, s.ScanFor(c[0], c[1], text, collect(&got))); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, want) || len(want) == 0 && strings.Contains(entries[7].Key, text) {
			t.Errorf("%q: %d keys, want %d", text, len(got), len(want))
		}
	}
}

// TestSameEachTime sees that the order in which entries come, and by how many
// adders, changes nothing in the file.
func TestSameEachTime(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 20))
	entries := randomEntries(r, 5000)
	want := build(t, "", BuildOptions{}, 1, entries)
	for adders := 1; adders < 5; adders++ {
		r.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		if got := build(t, "", BuildOptions{Memory: 1}, adders, entries); string(got.data) != string(want.data) {
			t.Errorf("%d adders make another file", adders)
		}
	}
	entries[17].Note += "!"
	if build(t, "", BuildOptions{}, 1, entries).Digest() == want.Digest() {
		t.Error("another note has the same digest")
	}
}

// TestManyComments has more comments than are shared, each twice.
func TestManyComments(t *testing.T) {
	const n = SharedComments + 1000
	entries := make([]Entry, 2*n)
	for i := range entries {
		entries[i] = Entry{Key: fmt.Sprint(i), Line: i + 1, Reason: fmt.Sprint("reason ", i%n)}
	}
	s := build(t, "", BuildOptions{}, 3, entries)
	check(t, s, entries)
	if s.shared != SharedComments {
		t.Errorf("%d comments are shared, want %d", s.shared, SharedComments)
	}
}

func TestHeader(t *testing.T) {
	want := Header{Source: [32]byte{1, 2}, Options: [32]byte{3, 4}, Meta: []byte(strings.Repeat(`{"path":"list"}`, 10_000))}
	path := filepath.Join(t.TempDir(), "list.seg")
	made, err := NewBuilder(BuildOptions{Key: &testKey}).Finish(t.Context(), path, want)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := mapPath(path, &testKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Segment{made, opened} {
		got := s.Header()
		if got.Source != want.Source || got.Options != want.Options || string(got.Meta) != string(want.Meta) {
			t.Error("the header is not what was given")
		}
		if s.Path() != path || s.Len() != 0 || s.Kinds() != 0 || s.NextUntil() != 0 {
			t.Errorf("path %q, %d entries, kinds %b, next %d", s.Path(), s.Len(), s.Kinds(), s.NextUntil())
		}
	}
}

func TestAddRefuses(t *testing.T) {
	a := NewBuilder(BuildOptions{Key: &testKey}).Adder()
	for _, e := range []Entry{
		{Key: strings.Repeat("k", MaxKey+1)},
		{Reason: strings.Repeat("r", MaxComment), Note: "n"},
		{Kind: markerKind},
		{For: "a@b", Key: "c\td"},
		{For: "a\t", Key: "c"},
		{File: -1},
		{Line: -1},
	} {
		e.Key += "example"
		if err := a.Add(e); !errors.Is(err, ErrEntry) {
			t.Errorf("Add of a bad entry: %v", err)
		}
	}
	if err := a.Add(Entry{For: "a"}); !errors.Is(err, ErrEntry) { // it would be a marker
		t.Errorf("Add of an entry for a recipient without a key: %v", err)
	}
}

func TestLookupAllocates(t *testing.T) {
	entries := randomEntries(rand.New(rand.NewPCG(21, 22)), 1000)
	s := build(t, "", BuildOptions{}, 1, entries)
	there := []byte(entries[0].Key)
	if n := testing.AllocsPerRun(100, func() { s.Has(testKey.Hash(there), there) }); n != 0 {
		t.Errorf("Has allocates %v times", n)
	}
	key := []byte("absent.example")
	if n := testing.AllocsPerRun(100, func() { s.Lookup(testKey.Hash(key), key) }); n != 0 {
		t.Errorf("a lookup of an absent key allocates %v times", n)
	}
}

// TestAtOnce looks up from several goroutines what none has verified yet.
func TestAtOnce(t *testing.T) {
	entries := randomEntries(rand.New(rand.NewPCG(27, 28)), 5000)
	path := filepath.Join(t.TempDir(), "list.seg")
	build(t, path, BuildOptions{}, 2, entries)
	s, err := mapPath(path, &testKey)
	if err != nil {
		t.Fatal(err)
	}
	want := plain(entries)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for key, e := range want {
				got, ok, err := s.Lookup(testKey.Hash([]byte(key)), []byte(key))
				if err != nil || !ok || got != e {
					t.Errorf("Lookup(%.40q) = %.300v, %v, %v; want %.300v", key, got, ok, err, e)
					return
				}
			}
		})
	}
	wg.Wait()
}

// mapPath maps the segment at a path.
func mapPath(path string, key *Key) (*Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Map(f, path, key)
}
