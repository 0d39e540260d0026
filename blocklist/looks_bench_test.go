package blocklist

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/disposable"
)

// BenchmarkLooks compares a lookup with its plain twin, which waits for each key in
// turn, by blocks of 512 lookups that alternate: the medians in nanoseconds, and
// their ratio. Cold senders are 65,536 in turn, a hot one is always the same.
//
//	go test -run '^$' -bench Looks -benchtime 200x ./blocklist
func BenchmarkLooks(b *testing.B) {
	cold := coldSenders(b, 1<<16)
	dozen := ""
	for i := range 12 {
		dozen += fmt.Sprintf("small%d.test\n", i)
	}
	c, _ := disposableConfig(b)
	compareLooks(b, "dozen", build(b, fast(blockList("dozen", write(b, inDir(b, "dozen.txt"), dozen)))), cold, nil)
	var listed []sender.Address
	for i, domain := range disposable.Domains() {
		if a, err := sender.Parse(fmt.Sprintf("user%d@mx.%s", i, domain)); err == nil {
			listed = append(listed, a)
		}
	}
	compareLooks(b, "121570", build(b, c), cold, listed)
	if testing.Short() {
		return // building the long list takes seconds
	}
	listed = nil
	for i := range 1 << 16 {
		n := i * 7919 % 10_000_000 // as benchVersion names them
		listed = append(listed, parse(b, fmt.Sprintf("user%d@host%d.w%d.example", i, n*7919, n%997)))
	}
	long := benchVersion(b, 10_000_000, "host")
	for _, f := range []Filter{{Kind: KindAuto}, {Kind: KindSharded, Entries: 40_000_000}, {Kind: KindSized}, {Kind: KindFuse}} {
		set := makeSet(b, layoutOf(b, f), []*Index{long})
		set.confirm, set.counters, set.key = true, new(Counters), ProcessKeys().Segment()
		set.lists[0].Stages = verdict.AllStages
		set.all = set.newView(nil)
		compareLooks(b, "10000000/"+string(f.Kind), set, cold, listed)
	}
}

// compareLooks runs the benchmarks of one Set, in huge pages as the Store has it.
func compareLooks(b *testing.B, name string, set *Set, cold, listed []sender.Address) {
	must(b, set.Settle())
	every := set.newView(nil)
	for stage := range every.kinds {
		every.kinds[stage] = sender.AllKinds
	}
	for _, c := range []struct {
		name    string
		view    *View
		senders []sender.Address
	}{
		{"clean", &set.all, cold},
		{"clean, all kinds of keys", &every, cold},
		{"clean, hot", &set.all, cold[:1]},
		{"listed", &set.all, listed},
	} {
		if c.senders != nil {
			b.Run(name+"/"+c.name, func(b *testing.B) { alternate(b, c.view, c.senders) })
		}
	}
}

// alternate measures both ways by turns. An operation is 512 lookups of each.
func alternate(b *testing.B, v *View, senders []sender.Address) {
	const block = 512
	ways := [2]func(verdict.Stage, sender.Address, FindOptions) (verdict.Verdict, error){v.lookupFound, v.lookupPlain}
	var times [2][]time.Duration
	next := [2]int{0, len(senders) / 2} // so that neither finds what the other has brought in
	for b.Loop() {
		for way, lookup := range ways {
			started := time.Now()
			for range block {
				if _, err := lookup(verdict.Envelope, senders[next[way]%len(senders)], FindOptions{Kinds: sender.AllKinds}); err != nil {
					b.Fatal(err)
				}
				next[way]++
			}
			times[way] = append(times[way], time.Since(started))
		}
	}
	var medians [2]float64
	for way := range ways {
		slices.Sort(times[way])
		medians[way] = float64(times[way][len(times[way])/2].Nanoseconds()) / block
	}
	b.ReportMetric(medians[0], "ns/lookup")
	b.ReportMetric(medians[1], "ns/plain")
	b.ReportMetric(medians[0]/medians[1], "ratio")
	b.ReportMetric(0, "ns/op")
}

// coldSenders makes n different senders of three labels, none of them listed.
func coldSenders(tb testing.TB, n int) []sender.Address {
	senders := make([]sender.Address, n)
	for i := range senders {
		senders[i] = parse(tb, fmt.Sprintf("user%d@mx%d.host%d.example", i*7919%10007, i%13, i))
	}
	return senders
}
