package blocklist

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// layoutOf is a filter's layout.
func layoutOf(tb testing.TB, f Filter) layout {
	tb.Helper()
	l, err := f.layout()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// smallLayout is a layout whose bitmaps are small, and where bits of all but the
// shortest lists are kept.
func smallLayout(tb testing.TB, f Filter) layout {
	l := layoutOf(tb, f)
	l.classicBits, l.partKeys = 1<<14, 20
	return l
}

// buildSegment makes a segment of what add adds, at path or, where that is empty,
// in memory.
func buildSegment(tb testing.TB, path string, add func(add func(key string))) *segment.Segment {
	tb.Helper()
	b := segment.NewBuilder(segment.BuildOptions{Dir: tb.TempDir(), Key: ProcessKeys().Segment()})
	adder := b.Adder()
	add(func(key string) {
		if err := adder.Add(segment.Entry{Key: key, Kind: uint8(sender.KindDomain), Line: 1}); err != nil {
			tb.Fatal(err)
		}
	})
	s, err := b.Finish(context.Background(), path, segment.Header{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func makeSegment(tb testing.TB, domains ...string) *segment.Segment {
	tb.Helper()
	return buildSegment(tb, "", func(add func(string)) {
		for _, d := range domains {
			add(d)
		}
	})
}

func versionOf(tb testing.TB, domains ...string) *Index {
	tb.Helper()
	return NewIndex(makeSegment(tb, domains...), nil, nil)
}

// manyDomains is a version of d0.example, d1.example and so on.
func manyDomains(tb testing.TB, n int) *Index {
	tb.Helper()
	return NewIndex(buildSegment(tb, "", func(add func(string)) {
		for i := range n {
			add(fmt.Sprintf("d%d.example", i))
		}
	}), nil, nil)
}

// makeSet makes what filters need of a Set.
func makeSet(tb testing.TB, l layout, versions []*Index, previous ...*Set) *Set {
	tb.Helper()
	s := &Set{}
	for i, v := range versions {
		s.lists = append(s.lists, setList{List{Name: fmt.Sprint("list", i), Action: verdict.Reject}, v})
	}
	var err error
	if s.filter, err = l.makeFilter(context.Background(), ProcessKeys(), s.lists, previous...); err != nil {
		tb.Fatal(err)
	}
	s.stats = s.describe(nil)
	return s
}

// indexOf makes an index of n keys.
func indexOf(tb testing.TB, n int, key func(i int) string) *Index {
	tb.Helper()
	return NewIndex(buildSegment(tb, "", func(add func(string)) {
		for i := range n {
			add(key(i))
		}
	}), nil, nil)
}

// bitsOf is all that a filter knows.
func bitsOf(tb testing.TB, f *setFilter) []byte {
	tb.Helper()
	var b bytes.Buffer
	write := func(w io.WriterTo) {
		if _, err := w.WriteTo(&b); err != nil {
			tb.Fatal(err)
		}
	}
	if f.bitmaps != nil {
		for _, shard := range f.bitmaps.Shards() {
			write(shard)
		}
	}
	if f.counting != nil {
		write(f.counting.Filter())
	}
	for _, fuse := range f.fuse {
		if err := fuse.WriteBits(&b, bloom.ListBits{}); err != nil {
			tb.Fatal(err)
		}
	}
	return b.Bytes()
}

// everyKind is a filter of each kind.
func everyKind() []Filter {
	var filters []Filter
	for _, kind := range Kinds() {
		filters = append(filters, Filter{Kind: kind, FPR: 0.02, CounterBits: 8})
	}
	return filters
}
