package blocklist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist/segment"
)

// Lists that change at random, restarts, and stored bits that are damaged, of
// another time or gone: whatever the kind, each key of each list may be there,
// and the filter is to the bit that of a Set which is made anew with its room.
func TestFilterAgainstPlain(t *testing.T) {
	for _, f := range everyKind() {
		t.Run(string(f.Kind), func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 1))
			l := smallLayout(t, f)
			dir := t.TempDir()
			keys := make([][]string, 4)
			versions := make([]*Index, len(keys))
			path := func(i int) string { return filepath.Join(dir, fmt.Sprint(i, ".bits")) }
			change := func(i int) {
				keys[i] = nil
				for range r.IntN(1 << r.IntN(13)) {
					keys[i] = append(keys[i], fmt.Sprintf("d%d.example", r.IntN(9000)))
				}
				versions[i] = versionOf(t, keys[i]...)
				versions[i].partIn = filePart{path: path(i)}
			}
			for i := range versions {
				change(i)
			}
			var set *Set
			for step := range unlessShort(60, 20) {
				switch i := r.IntN(len(versions)); r.IntN(5) {
				case 0, 1: // a restart
					if r.IntN(2) == 0 {
						spoil(t, r, path(i))
					}
					set = nil
					for j, v := range versions {
						versions[j] = NewIndex(v.segment, nil, filePart{path(j), r.IntN(3) == 0})
					}
				default:
					change(i)
				}
				set = makeSet(t, l, versions, set)
				fresh := make([]*Index, len(versions))
				for i, v := range versions {
					fresh[i] = NewIndex(v.segment, nil, nil)
				}
				anew := makeSet(t, l, fresh, &Set{filter: &setFilter{layout: l, capacity: set.filter.capacity}})
				if !bytes.Equal(bitsOf(t, set.filter), bitsOf(t, anew.filter)) {
					t.Fatalf("step %d: the filter is not what it is when made anew", step)
				}
				for _, list := range keys {
					for _, key := range list {
						if !set.filter.mayContain([]byte(key)) {
							t.Fatalf("step %d: %s is not found", step, key)
						}
					}
				}
				if err := set.Settle(); err != nil {
					t.Fatal(err)
				}
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// spoil changes, cuts or removes a file, if it is there.
func spoil(t *testing.T, r *rand.Rand, path string) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(text) == 0 { // as it was cut before
		return
	}
	must(t, err)
	switch r.IntN(3) {
	case 0:
		must(t, os.Remove(path))
		return
	case 1:
		text = text[:r.IntN(len(text))]
	default:
		text[r.IntN(len(text))] ^= 1 << r.IntN(8)
	}
	// A new file, as a disk would not do it, but the old one is open.
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, text, 0o600))
}

// What was stored is used: the bits of a list that did not change come from the
// file, though another process has more entries.
func TestBitsAreKept(t *testing.T) {
	filters := []Filter{{}, {Kind: KindFuse}, {Kind: KindSharded}, {Kind: KindSized, FPR: 0.01}}
	for _, f := range filters[:unlessShort(4, 2)] {
		l := smallLayout(t, f)
		path := filepath.Join(t.TempDir(), "current.bits")
		first := manyDomains(t, 120_000)
		first.partIn = filePart{path: path}
		set := makeSet(t, l, []*Index{first})
		must(t, set.Settle())

		again := NewIndex(first.segment, nil, filePart{path, true})
		other := manyDomains(t, 20_000) // by which alone the room would be another
		after := makeSet(t, l, []*Index{again, other})
		if !again.saved {
			t.Errorf("%v: the stored bits were not used", f)
		}
		if f.Kind != KindFuse && after.filter.capacity != set.filter.capacity {
			t.Errorf("%v: room for %d, and for %d before", f, after.filter.capacity, set.filter.capacity)
		}

		// Another process's key: the bits are of no use.
		elsewhere := NewIndex(first.segment, nil, filePart{path: path})
		lists := []setList{{List{Name: "a"}, elsewhere}}
		if _, err := l.makeFilter(t.Context(), NewKeys([]byte("another secret")), lists); err != nil || elsewhere.saved {
			t.Errorf("%v: bits of another key were used: %v", f, err)
		}
	}
}

// A damaged index is an error that names the list.
func TestFilterOfDamagedIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.seg")
	whole := buildSegment(t, path, func(add func(string)) {
		for i := range 2000 {
			add(fmt.Sprintf("d%d.example", i))
		}
	})
	text, err := os.ReadFile(path)
	must(t, err)
	text[len(text)/2] ^= 1
	damaged := filepath.Join(t.TempDir(), "damaged.seg")
	must(t, os.WriteFile(damaged, text, 0o600))
	file, err := os.Open(damaged)
	must(t, err)
	defer file.Close()
	s, err := segment.Map(file, damaged, ProcessKeys().Segment())
	must(t, err)
	for _, f := range everyKind() {
		for _, keep := range []uint64{1, 1 << 20} {
			l := smallLayout(t, f)
			l.partKeys = keep
			lists := []setList{{List{Name: "good"}, NewIndex(whole, nil, nil)}, {List{Name: "bad"}, NewIndex(s, nil, nil)}}
			_, err := l.makeFilter(t.Context(), ProcessKeys(), lists)
			var indexError *IndexError
			if !errors.As(err, &indexError) || indexError.List != 1 || indexError.Name != "bad" || !errors.Is(err, segment.ErrDamaged) {
				t.Errorf("%v: %v", f, err)
			}

			// The filter that serves still has the list's entries: lookups fail and let nobody in.
			before := makeSet(t, l, []*Index{NewIndex(noEntries.segment, nil, nil), NewIndex(whole, nil, nil)})
			lists[0].index, lists[1].index = noEntries, NewIndex(s, nil, nil)
			lists[1].index.MarkDamaged()
			if again, err := l.makeFilter(t.Context(), ProcessKeys(), lists, before); err != nil || !again.mayContain([]byte("d5.example")) {
				t.Errorf("%v: %v, and d5.example is not in the filter", f, err)
			}
		}
	}
}

func TestFilterCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("shutting down")
	cancel(cause)
	for _, f := range everyKind() {
		lists := []setList{{List{Name: "a"}, manyDomains(t, 5000)}}
		if _, err := smallLayout(t, f).makeFilter(ctx, ProcessKeys(), lists); !errors.Is(err, cause) {
			t.Errorf("%v: %v", f, err)
		}
	}
}

// The measured rate is near the expected one, for every kind, and the listed
// names are no false positives.
func TestMeasureFPR(t *testing.T) {
	for _, f := range everyKind() {
		l := smallLayout(t, f)
		l.classicBits = 1 << 17
		set := makeSet(t, l, []*Index{manyDomains(t, 9000), manyDomains(t, 30)})
		var stats SetStats
		set.filter.describe(&stats)
		probes := unlessShort(100_000, 10_000)
		wrong, err := set.MeasureFPR(t.Context(), probes, 1)
		must(t, err)
		// Classic hashes are some way off the formula.
		want := stats.FPR * float64(probes)
		if math.Abs(float64(wrong)-want) > 5*math.Sqrt(want)+want/2+20 {
			t.Errorf("%v: %d of %d passed, and %.1f were expected", f, wrong, probes, want)
		}
		if again, _ := set.MeasureFPR(t.Context(), probes, 1); again != wrong {
			t.Errorf("%v: %d, and %d the second time", f, wrong, again)
		}
	}
}

// No kind's lookup allocates.
func TestMayContainAllocates(t *testing.T) {
	for _, f := range everyKind() {
		l := smallLayout(t, f)
		set := makeSet(t, l, []*Index{manyDomains(t, 5000)})
		n := testing.AllocsPerRun(100, func() {
			var room [64]byte
			key := append(room[:0], "mail.absent.example"...)
			set.filter.mayContain(key)
		})
		if n > 0 {
			t.Errorf("%v: %v allocations", f, n)
		}
	}
}

// The classic filter says that it is full, and what to choose.
func TestClassicWarns(t *testing.T) {
	l := smallLayout(t, Filter{}) // capacity 1,032
	for _, c := range []struct {
		keys int
		full bool
	}{{900, false}, {1100, true}, {3000, true}} {
		var stats SetStats
		makeSet(t, l, []*Index{manyDomains(t, c.keys)}).filter.describe(&stats)
		if full := stats.Warning != ""; full != c.full {
			t.Errorf("%d keys: warning %q", c.keys, stats.Warning)
		}
	}
}

// What is damaged is replaced.
func TestDamagedBitsAreReplaced(t *testing.T) {
	for _, f := range []Filter{{}, {Kind: KindFuse}} {
		l := smallLayout(t, f)
		first := manyDomains(t, 100)
		path := filepath.Join(t.TempDir(), "current.bits")
		first.partIn = filePart{path: path}
		must(t, makeSet(t, l, []*Index{first}).Settle())
		good, err := os.ReadFile(path)
		must(t, err)
		bad := bytes.Clone(good)
		bad[len(bad)-20] ^= 1
		must(t, os.WriteFile(path, bad, 0o600))
		must(t, makeSet(t, l, []*Index{NewIndex(first.segment, nil, first.partIn)}).Settle())
		if current, err := os.ReadFile(path); err != nil || !bytes.Equal(current, good) {
			t.Errorf("%s: the damaged file was not replaced: %v", f.Kind, err)
		}
	}
}
