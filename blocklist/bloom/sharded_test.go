package bloom

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"spamgate/hashfamily"
)

// newShards makes an empty filter of shards.
func newShards(tb testing.TB, family hashfamily.Family, shards int) *Sharded {
	tb.Helper()
	s, err := NewSharded(family, shards)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// allBits are the bits of all shards.
func (s *Sharded) allBits() []byte {
	var all []byte
	for _, f := range s.shards {
		all = append(all, f.bits...)
	}
	return all
}

// Fill sets what AddAll sets for the keys of each shard, in every family.
func TestFillIsAddAll(t *testing.T) {
	keys := makeKeys("k", 3000)
	for _, family := range allFamilies(t, 1<<14) {
		for _, shards := range []int{1, 2, 3, 7} {
			filled, added := newShards(t, family, shards), newShards(t, family, shards)
			if err := filled.Fill(t.Context(), uint64(len(keys)), scanOf(keys)); err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				added.shards[added.shard(k.hash)].Add(k.key)
			}
			if !bytes.Equal(filled.allBits(), added.allBits()) || filled.SetBits() != added.SetBits() {
				t.Errorf("%s, %d shards: Fill and Add set other bits", family.Name(), shards)
			}
			for _, k := range keys {
				if !filled.MayContain(k.hash, k.key) {
					t.Fatalf("%s, %d shards: %q is not found", family.Name(), shards, k.key)
				}
			}
		}
	}
}

// With so many keys that several cores fill one bitmap, nothing is lost.
func TestFillOnManyCores(t *testing.T) {
	keys := makeKeys("k", fillAlone+1000)
	family, err := hashfamily.NewClassic(1 << 22)
	if err != nil {
		t.Fatal(err)
	}
	filled, added := newShards(t, family, 1), newShards(t, family, 1)
	if err := filled.Fill(t.Context(), fillAlone*fillWorkers, scanOf(keys)); err != nil {
		t.Fatal(err)
	}
	if err := added.Fill(t.Context(), 0, scanOf(keys)); err != nil { // by one
		t.Fatal(err)
	}
	if !bytes.Equal(filled.allBits(), added.allBits()) || filled.SetBits() != added.SetBits() {
		t.Error("other bits are set")
	}
}

// A set of keys that grows at random, beside a plain map: what is in the map is
// found, and of what is not about as many pass as the rate says.
func TestShardedAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	family, err := hashfamily.NewDouble(1<<16, 7, testHashKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{1, 2, 5} {
		s := newShards(t, family, shards)
		in := map[string]bool{}
		for range 4 {
			var lot []hashed
			for range r.IntN(1 + 3000*shards) {
				key := randomKey(r)
				lot = append(lot, hashed{hashOf(key), key})
				in[string(key)] = true
			}
			sortKeys(lot)
			if err := s.Fill(t.Context(), uint64(len(lot)), scanOf(lot)); err != nil {
				t.Fatal(err)
			}
			wrong, asked := 0, 0
			for range 20_000 {
				key := randomKey(r)
				if !in[string(key)] {
					asked++
					if s.MayContain(hashOf(key), key) {
						wrong++
					}
				}
			}
			for key := range in {
				if !s.MayContain(hashOf([]byte(key)), []byte(key)) {
					t.Fatalf("%d shards: %q is not found", shards, key)
				}
			}
			if want := s.ExpectedFPR(float64(len(in))) * float64(asked); math.Abs(float64(wrong)-want) > 5*math.Sqrt(want)+5 {
				t.Errorf("%d shards, %d keys: %d of %d absent keys passed, and %.1f were expected", shards, len(in), wrong, asked, want)
			}
		}
	}
}

func TestFillFails(t *testing.T) {
	keys := makeKeys("k", 5000)
	family, err := hashfamily.NewClassic(1 << 14)
	if err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{1, 3} {
		if err := newShards(t, family, shards).Fill(t.Context(), 1, failingScan(keys, 700)); !errors.Is(err, errScan) {
			t.Errorf("%d shards: %v, want the scan's error", shards, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errScan)
		if err := newShards(t, family, shards).Fill(ctx, 1, scanOf(keys)); !errors.Is(err, errScan) {
			t.Errorf("%d shards: %v, want the context's cause", shards, err)
		}
	}
}

// The ranges of hashes follow each other without gaps, and are those of shard.
func TestShardHashes(t *testing.T) {
	for _, shards := range []int{1, 2, 3, 6, 7, 64, 1000} {
		s := &Sharded{shards: make([]*Filter, shards)}
		next := uint64(0)
		for i := range shards {
			first, last := shardHashes(i, shards)
			if first != next || s.shard(first) != uint64(i) || s.shard(last) != uint64(i) {
				t.Fatalf("shard %d of %d: %#x to %#x, after %#x", i, shards, first, last, next)
			}
			next = last + 1
		}
		if next != 0 {
			t.Fatalf("%d shards end at %#x", shards, next-1)
		}
	}
}

func TestNewShardedRefuses(t *testing.T) {
	family, err := hashfamily.NewClassic(1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{-1, 0, 2} {
		if _, err := NewSharded(family, shards); err == nil {
			t.Errorf("%d shards of 1000 bits: no error", shards)
		}
	}
	if _, err := NewSharded(nil, 1); err == nil {
		t.Error("no family: no error")
	}
}
