package blocklist

import (
	"fmt"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// benchFilters is a filter of each kind, with shards at every size.
var benchFilters = []Filter{
	{Kind: KindAuto},
	{Kind: KindSharded, Entries: 40_000_000},
	{Kind: KindSized},
	{Kind: KindSized, FPR: 1e-3},
	{Kind: KindCounting},
	{Kind: KindFuse, FPR: 0.004},
	{Kind: KindFuse, FPR: 1e-4},
	{Kind: KindFuse},
}

// BenchmarkChange is the new filter after one entry more or less in a list of
// 100,000 beside one of a million: what a change costs once the files are read.
func BenchmarkChange(b *testing.B) {
	if testing.Short() {
		b.Skip("building the large list takes seconds; -short")
	}
	big, small := benchVersion(b, 1_000_000, "big"), benchVersion(b, 100_000, "small")
	more := benchVersion(b, 100_001, "small")
	for _, f := range benchFilters {
		b.Run(fmt.Sprintf("%s/fpr=%v", f.Kind, f.FPR), func(b *testing.B) {
			layout := layoutOf(b, f)
			set := makeSet(b, layout, []*Index{big, small})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				// New to the filter each time.
				changed := NewIndex([]*Index{more, small}[i%2].segment, nil, nil)
				set = makeSet(b, layout, []*Index{big, changed}, set)
			}
		})
	}
}

// benchVersion is a version of n domains of about 25 bytes.
func benchVersion(b *testing.B, n int, word string) *Index {
	b.Helper()
	return NewIndex(buildSegment(b, "", func(add func(string)) {
		for i := range n {
			add(fmt.Sprintf("%s%d.w%d.example", word, i*7919, i%997))
		}
	}), nil, nil)
}

// BenchmarkCleanSender looks up senders of three labels whom none of ten million
// entries knows, each of them another: walk and filter, and what is confirmed in
// vain.
func BenchmarkCleanSender(b *testing.B) {
	if testing.Short() {
		b.Skip("building the list takes seconds; -short")
	}
	v := benchVersion(b, 10_000_000, "host")
	senders := make([]sender.Address, 1<<16)
	for i := range senders {
		senders[i] = parse(b, fmt.Sprintf("user%d@mx%d.clean%d.example", i*7919%10007, i%13, i))
	}
	for _, f := range benchFilters {
		b.Run(fmt.Sprintf("%s/fpr=%v", f.Kind, f.FPR), func(b *testing.B) {
			set := makeSet(b, layoutOf(b, f), []*Index{v})
			set.confirm, set.counters, set.key = true, new(Counters), ProcessKeys().Segment()
			set.lists[0].Stages = verdict.AllStages
			set.all = set.newView(nil)
			if err := set.Settle(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				lookup(b, set, verdict.Envelope, senders[i%len(senders)])
			}
			b.StopTimer()
			var stats SetStats
			set.filter.describe(&stats)
			b.ReportMetric(float64(stats.FilterBytes)/(1<<20), "MiB")
			b.ReportMetric(float64(set.FalsePositives())/float64(set.Lookups()), "false/lookup")
		})
	}
}
