package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// lookups times lookups of clean and of listed senders in this process, with the
// files of the gate's state directory. It opens and closes the lists as the gate
// does: only then is the filter in huge pages, if the system has them.
func lookups(ctx context.Context, dir, kind string, seed, entries uint64) (clean, hit time.Duration, err error) {
	store, err := store.Open(ctx, store.Config{
		Lists: []store.List{
			{Name: "long", Paths: []string{filepath.Join(dir, "long.txt")}, Type: blocklist.Block, Action: verdict.Reject, MaxBytes: 1 << 40},
			{Name: "short", Paths: []string{filepath.Join(dir, "short.txt")}, Type: blocklist.Block, Action: verdict.Reject},
		},
		Filter:   blocklist.Filter{Kind: blocklist.Kind(kind)},
		StateDir: filepath.Join(dir, "state"),
		ReadOnly: true,
	})
	if err != nil {
		return 0, 0, err
	}
	set := store.Set()
	if err := store.Close(); err != nil { // waits until the filter is complete
		return 0, 0, err
	}
	const distinct = 1 << 18
	random := rand.New(rand.NewPCG(seed, 1))
	absent, present := make([]sender.Address, distinct), make([]sender.Address, distinct)
	for i := range distinct {
		if absent[i], err = sender.Parse(fmt.Sprintf("anna.%d@mail.c%d.example", random.Uint32(), random.Uint32())); err != nil {
			return 0, 0, err
		}
		text := string(generated(nil, seed, random.Uint64N(entries)))
		if present[i], err = sender.Parse(asSender(text)); err != nil {
			return 0, 0, err
		}
	}
	if clean, err = timeLookups(set, absent, false); err != nil {
		return 0, 0, err
	}
	hit, err = timeLookups(set, present, true)
	return clean, hit, err
}

// timeLookups returns the time of one lookup, the best of some rounds: the first
// ones load the pages.
func timeLookups(set *blocklist.Set, senders []sender.Address, listed bool) (time.Duration, error) {
	best := time.Duration(1 << 62)
	for range 5 {
		started := time.Now()
		for _, a := range senders {
			d, err := set.Lookup(verdict.Envelope, a)
			if err != nil {
				return 0, err
			}
			if listed != (d.Action == verdict.Reject) {
				return 0, fmt.Errorf("%s: the set says %s", a, d.Action)
			}
		}
		best = min(best, time.Since(started))
	}
	return best / time.Duration(len(senders)), nil
}
