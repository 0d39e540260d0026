package blocklist

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/disposable"
)

func TestIndexAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := newIndexBuilder()
	want := map[string]listfile.Entry{}
	duplicates := 0
	for line := 1; line <= 5000; line++ {
		e := listfile.Entry{
			Key:       fmt.Sprintf("host%d.example", r.IntN(4000)),
			Kind:      sender.KindDomain,
			Line:      line,
			Exception: r.IntN(10) == 0,
		}
		if r.IntN(3) > 0 {
			e.Reason = fmt.Sprintf("reason %d", r.IntN(50))
		}
		if r.IntN(3) == 0 {
			e.Note = fmt.Sprintf("note %d", r.IntN(50))
		}
		if err := b.add(0, e); err != nil {
			t.Fatal(err)
		}
		first, ok := want[e.Key]
		if ok {
			duplicates++
		}
		// The first line stays, but an exception outdoes what it cancels.
		if !ok || e.Exception && !first.Exception {
			want[e.Key] = e
		}
	}
	x, n := b.finish()
	if n != duplicates || len(x.entries) != len(want) {
		t.Fatalf("%d duplicates, %d entries; want %d, %d", n, len(x.entries), duplicates, len(want))
	}
	for key, e := range want {
		got := x.lookup(hashOf([]byte(key)), []byte(key))
		if got == nil {
			t.Fatalf("%s is missing", key)
		}
		if int(got.line) != e.Line || got.exception() != e.Exception || x.reason(got) != e.Reason || x.note(got) != e.Note {
			t.Errorf("%s: line %d, %q, %q; want %+v", key, got.line, x.reason(got), x.note(got), e)
		}
	}
	for i := range 4000 {
		key := []byte(fmt.Sprintf("host%d.example.net", i))
		if x.lookup(hashOf(key), key) != nil {
			t.Fatalf("%s is not in the list", key)
		}
	}
}

// Entries of one hash are told apart by their text.
func TestIndexCollisions(t *testing.T) {
	b := newIndexBuilder()
	for i := range 5 {
		if err := b.add(0, listfile.Entry{Key: fmt.Sprintf("k%d", i), Line: i + 1}); err != nil {
			t.Fatal(err)
		}
		b.entries[i].hash = 7
	}
	x, _ := b.finish()
	for i := range 5 {
		if e := x.lookup(7, fmt.Appendf(nil, "k%d", i)); e == nil || int(e.line) != i+1 {
			t.Errorf("k%d: %+v", i, e)
		}
	}
	if e := x.lookup(7, []byte("k5")); e != nil {
		t.Errorf("found %+v", e)
	}
}

func TestIndexLimits(t *testing.T) {
	entries := map[string]listfile.Entry{"key": {Key: strings.Repeat("k", maxKey+1), Line: 1}}
	if line := uint64(math.MaxUint32) + 1; line <= math.MaxInt { // else an int can't count so far
		entries["line"] = listfile.Entry{Key: "k", Line: int(line)}
	}
	for name, e := range entries {
		if err := newIndexBuilder().add(0, e); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := newIndexBuilder().add(1<<16, listfile.Entry{Key: "k"}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("file: %v", err)
	}
}

// An entry takes at most 48 bytes and its text, even if no comment is shared.
func TestIndexSize(t *testing.T) {
	if e, r := unsafe.Sizeof(entry{}), unsafe.Sizeof(remark{}); e != 24 || r != 12 {
		t.Fatalf("an entry takes %d bytes and a remark %d: index.size and its documentation say 24 and 12", e, r)
	}
	const n = 100_000
	text := 0
	before := heap()
	b := newIndexBuilder()
	for i := range n {
		e := listfile.Entry{Key: fmt.Sprintf("host%d.example", i), Line: i + 1, Reason: fmt.Sprintf("reason %d", i)}
		text += len(e.Key) + len(e.Reason)
		if err := b.add(0, e); err != nil {
			t.Fatal(err)
		}
	}
	x, _ := b.finish()
	b = nil
	after := heap()
	if got := float64(x.size()-text) / n; got > 48 {
		t.Errorf("%.1f bytes an entry by its own account", got)
	}
	if got := (float64(after) - float64(before) - float64(text)) / n; got > 48 {
		t.Errorf("%.1f bytes an entry by the heap", got)
	}
	runtime.KeepAlive(x)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one freed of pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLookupAllocations(t *testing.T) {
	c, _ := disposableConfig(t)
	set := build(t, c)
	for _, address := range []string{"someone@mail.example.com", "someone+tag@a.b.example.com", "<>", "u@[192.0.2.1]"} {
		a := parse(t, address)
		for _, stage := range []Stage{Envelope, Header} {
			if n := testing.AllocsPerRun(100, func() { set.Lookup(stage, a) }); n != 0 {
				t.Errorf("%s: %v allocations", address, n)
			}
		}
	}
	x := set.lists[0].version.index
	key := []byte("0-180.com")
	if n := testing.AllocsPerRun(100, func() {
		if x.lookup(hashOf(key), key) == nil {
			t.Error("not found")
		}
	}); n != 0 {
		t.Errorf("a lookup in the index: %v allocations", n)
	}
}

// The real list: every valid line is found with its line number.
func TestRealList(t *testing.T) {
	c, path := disposableConfig(t)
	set := build(t, c)
	s := set.Stats()
	if l := s.Lists[0]; l.Entries != disposable.Count-disposableInvalid || l.Invalid != disposableInvalid || len(l.Problems) != disposableInvalid {
		t.Errorf("%d entries, %d invalid, problems %v", l.Entries, l.Invalid, l.Problems)
	}
	invalid := map[int]bool{}
	for _, p := range s.Lists[0].Problems {
		invalid[p.Line] = true
	}
	line := 0
	for text := range strings.Lines(string(disposable.Text())) {
		line++
		if invalid[line] {
			continue
		}
		a, err := sender.Parse("someone@www." + strings.TrimSpace(text))
		if err != nil {
			t.Fatal(err)
		}
		m := set.Lookup(Envelope, a).Match
		// Where a parent domain is listed too, or both forms of an IDN, it is
		// a line of the same list.
		if m.List != "disposable" || m.File != path || m.Line == 0 || m.Line > line && strings.TrimSpace(text) == m.Entry {
			t.Fatalf("line %d, %s: %+v", line, text, m)
		}
	}
	if line != disposable.Count {
		t.Errorf("%d lines", line)
	}
	if s.Bits != 1<<28 || s.Hashes != 11 || s.Family != "classic" || s.FillRatio < 0.003 || s.FillRatio > 0.005 ||
		s.FPR <= 0 || s.EstimatedEntries < 90_000 || s.Capacity < 16.8e6 || s.Warning != "" {
		t.Errorf("%+v", s)
	}
}
