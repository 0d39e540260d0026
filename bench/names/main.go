// Command names measures the daemon's classic filter of 2^28 bits with ten million
// entries of one kind, looked up with absent keys of the same kind, for each kind of
// [hashlab.NameSets]. It prints the rate that the daemon shows beside the measured
// one. It takes some ten minutes on two cores, and 1.5 GiB of temporary files.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"

	"spamgate/blocklist"
	"spamgate/blocklist/bloom"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/hashfamily"
	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("names: ")
	entries := flag.Int("entries", 10_000_000, "number of entries")
	queries := flag.Int("queries", 10_000_000, "number of absent keys")
	seed := flag.Uint64("seed", 1, "chooses the keys of random kinds")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	fmt.Printf("%s entries of a kind in 2^28 bits, %s absent keys of the same kind, seed %d\n\n", text.Number(*entries), text.Number(*queries), *seed)
	fmt.Printf("%-22s %9s %9s %20s %9s\n", "kind of keys", "fill", "measured", "95% limits", "shown")
	for _, kind := range hashlab.NameSets() {
		m, err := measure(ctx, kind.New(*seed), *entries, *queries)
		if err != nil {
			log.Fatalf("%s: %v", kind.Name, err)
		}
		low, high := bloom.Limits(m.hits, *queries)
		fmt.Printf("%-22s %9.4f %9.2e [%8.2e, %8.2e] %9.2e\n", kind.Name, m.fill, float64(m.hits)/float64(*queries), low, high, m.shown)
		if m.shown < high {
			log.Fatalf("%s: the rate that is shown is below the upper limit", kind.Name)
		}
	}
}

// measurement is the result for one kind of keys.
type measurement struct {
	fill, shown float64
	hits        int
}

// measure fills a filter with the first keys and looks the next ones up.
func measure(ctx context.Context, key func([]byte, uint64) []byte, entries, queries int) (m measurement, err error) {
	family, err := hashfamily.NewClassic(bloom.ClassicBits)
	if err != nil {
		return m, err
	}
	filter, err := bloom.New(family)
	if err != nil {
		return m, err
	}
	keys := blocklist.ProcessKeys()
	builder := segment.NewBuilder(segment.BuildOptions{Key: keys.Segment()})
	defer builder.Abort()
	adder := builder.Adder()
	var name []byte
	for i := range entries {
		name = key(name[:0], uint64(i))
		filter.Add(name)
		if err := adder.Add(segment.Entry{Key: string(name), Kind: uint8(sender.KindDomain), Line: 1}); err != nil {
			return m, err
		}
	}
	m.fill = filter.FillRatio()
	if m.shown, err = shown(ctx, builder, keys); err != nil {
		return m, err
	}
	for i := range queries {
		if name = key(name[:0], uint64(entries+i)); filter.MayContain(name) {
			m.hits++
		}
		if i%1024 == 0 && ctx.Err() != nil {
			return m, ctx.Err()
		}
	}
	return m, nil
}

// shown returns the rate that the daemon shows for a list: it has probed the filter
// with changed entries of the list.
func shown(ctx context.Context, builder *segment.Builder, keys *blocklist.Keys) (float64, error) {
	index, err := builder.Finish(ctx, "", segment.Header{})
	if err != nil {
		return 0, err
	}
	list := blocklist.SetList{List: blocklist.List{Name: "names", Action: verdict.Reject}, Index: blocklist.NewIndex(index, nil, nil)}
	set, err := blocklist.NewSet(ctx, blocklist.SetConfig{Lists: []blocklist.SetList{list}, Filter: blocklist.Filter{Kind: blocklist.KindClassic}, Keys: keys})
	if err != nil {
		return 0, err
	}
	if err := set.Probe(ctx, 0); err != nil {
		return 0, err
	}
	return set.Stats().FPR, nil
}
