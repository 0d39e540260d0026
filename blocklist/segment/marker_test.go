package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkMarkers compares the markers of a segment with the recipients that have entries.
func checkMarkers(t *testing.T, s *Segment, recipients map[string]bool) {
	t.Helper()
	var markers []string
	keys := uint64(0)
	must(t, s.ScanKeys(0, math.MaxUint64, func(_ uint64, key []byte) bool {
		keys++
		if recipient, ok := strings.CutSuffix(string(key), forEnd); ok {
			markers = append(markers, recipient)
		}
		return true
	}))
	if keys != s.Keys() || s.Keys() != s.Len()+uint64(len(recipients)) || len(markers) != len(recipients) {
		t.Errorf("ScanKeys gives %d keys with %d markers; %d keys, %d entries, %d recipients", keys, len(markers), s.Keys(), s.Len(), len(recipients))
	}
	entries := uint64(0)
	must(t, s.Scan(0, math.MaxUint64, func(_ uint64, key []byte) bool {
		entries++
		return true
	}))
	if entries != s.Len() {
		t.Errorf("Scan gives %d keys of %d entries", entries, s.Len())
	}
	for _, recipient := range markers {
		if !recipients[recipient] {
			t.Errorf("a marker of %q", recipient)
		}
		for key, want := range map[string]bool{recipient + forEnd: true, recipient + forEnd + "?": false} {
			if ok, err := s.Has(testKey.Hash([]byte(key)), []byte(key)); ok != want || err != nil {
				t.Errorf("Has(%q) = %v, %v", key, ok, err)
			}
		}
	}
	if len(s.data) == 0 {
		return // the zero Segment has no file
	}
	if v := binary.LittleEndian.Uint32(s.data[atVersion:]); (v == versionFor) != (len(recipients) > 0) {
		t.Errorf("%d recipients in a file of version %d", len(recipients), v)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// TestRecipientsAgainstMap: entries of few recipients and of many, in groups and not, beside
// entries for all.
func TestRecipientsAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	for _, n := range []int{1, 100, 20_000} {
		for _, recipients := range []int{1, 20, 3 * recentMarkers} {
			entries := randomEntries(r, n)
			for i := range entries {
				if e := &entries[i]; e.Key != "" && len(e.Key) < MaxKey-40 && r.IntN(20) > 0 {
					e.For = fmt.Sprintf("user%d@example.net", r.IntN(recipients))
				}
			}
			if r.IntN(2) == 0 {
				slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.For, b.For) })
			}
			path := filepath.Join(t.TempDir(), "list.seg")
			check(t, build(t, path, BuildOptions{Memory: r.IntN(2)}, 1+r.IntN(4), entries), entries)
		}
	}
}

// TestRepeatedRecipients: repeated keys of a large partition are dropped while it is built,
// and no dropped marker counts.
func TestRepeatedRecipients(t *testing.T) {
	entries := make([]Entry, 300_000)
	for i := range entries {
		entries[i] = Entry{For: fmt.Sprintf("user%d@example.net", i%2), Key: "news.example", Line: i + 1, Reason: strings.Repeat("r", 100)}
	}
	s := build(t, "", BuildOptions{}, 1, entries)
	if s.Len() != 2 || s.Keys() != 4 || s.Duplicates() != uint64(len(entries))-2 {
		t.Errorf("%d entries, %d keys, %d duplicates", s.Len(), s.Keys(), s.Duplicates())
	}
}

// TestAllocationsFor: neither the key of a recipient's entry nor a miss allocates.
func TestAllocationsFor(t *testing.T) {
	s := build(t, "", BuildOptions{}, 1, []Entry{{For: "ann@example.net", Key: "news.example"}})
	if n := testing.AllocsPerRun(100, func() {
		var scratch [100]byte
		key := AppendFor(scratch[:0], "bob@example.net", "news.example")
		if _, ok, err := s.Lookup(testKey.Hash(key), key); ok || err != nil {
			t.Error(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOlderVersion: a program that knows the first version alone refuses the file of a list
// with entries for recipients, and takes the others. It compared the version with 1.
func TestOlderVersion(t *testing.T) {
	for want, entries := range map[uint32][]Entry{
		1: {{Key: "news.example"}},
		2: {{For: "ann@example.net", Key: "news.example"}},
	} {
		data := build(t, "", BuildOptions{}, 1, entries).data
		if v := binary.LittleEndian.Uint32(data[atVersion:]); v != want {
			t.Errorf("%+v: version %d", entries, v)
		}
	}
	data := slices.Clone(build(t, "", BuildOptions{}, 1, nil).data)
	binary.LittleEndian.PutUint32(data[atVersion:], 3)
	if _, err := fromBytes(data); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}
