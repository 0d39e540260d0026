package blocklist

import (
	"context"
	"fmt"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// addKey adds a domain to an index.
func addKey(tb testing.TB, b *indexBuilder, domain string) {
	if err := b.add(0, listfile.Entry{Key: domain, Kind: sender.KindDomain, Line: 1}); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkChange is the new Set after one entry more or less in a small list
// beside a list of a million: what a change costs once the files are read.
func BenchmarkChange(b *testing.B) {
	const entries = 1_000_000
	if testing.Short() {
		b.Skip("building the large list takes seconds; -short")
	}
	large := newIndexBuilder()
	for i := range entries {
		addKey(b, large, fmt.Sprintf("host%d.w%d.example", i, i%997))
	}
	index, _ := large.finish()
	big := reading{good: &version{index: index}}
	var small [2]reading
	for i := range small {
		x := newIndexBuilder()
		for j := range 1000 + i {
			addKey(b, x, fmt.Sprintf("small%d.example", j))
		}
		index, _ := x.finish()
		small[i].good = &version{index: index}
	}
	for _, f := range []Filter{{}, {Kind: KindSized}, {Kind: KindCounting}} {
		b.Run(f.String(), func(b *testing.B) {
			c := Config{Confirm: true, Filter: f, Lists: []List{blockList("big", "/big"), blockList("small", "/small")}}
			layout, err := f.layout()
			if err != nil {
				b.Fatal(err)
			}
			set, err := newSet(context.Background(), c, layout, []reading{big, small[0]})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 1; b.Loop(); i++ {
				if set, err = newSet(context.Background(), c, layout, []reading{big, small[i%2]}, set); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
