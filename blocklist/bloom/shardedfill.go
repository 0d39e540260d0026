package bloom

import (
	"context"
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync"
)

// Scan calls yield with the keys whose hashes are from first to last, both
// included, in ascending order of the hashes, until yield returns false. A key is
// valid until yield returns. Several scans may run at the same time.
type Scan func(first, last uint64, yield func(hash uint64, key []byte) bool) error

// Fill adds n keys, on all cores. It divides the work by n, which need not be
// exact. After an error some of the keys are added.
func (s *Sharded) Fill(ctx context.Context, n uint64, scan Scan) error {
	if len(s.shards) == 1 {
		return s.shards[0].fill(ctx, n, scan)
	}
	shards := len(s.shards)
	return parallel(shards, func(i int) error {
		first, last := shardHashes(i, shards)
		return s.shards[i].addScan(ctx, n/uint64(shards), scan, first, last)
	})
}

// Cores that set bits in one bitmap at the same time slow each other down. So each
// fills a bitmap of its own, which is then united with the first. That is worth it
// from fillAlone keys on, and for up to fillWorkers cores.
const (
	fillAlone   = 1 << 18
	fillWorkers = 4
)

// fill implements Fill for a filter of one shard.
func (f *Filter) fill(ctx context.Context, n uint64, scan Scan) error {
	workers := min(runtime.GOMAXPROCS(0), fillWorkers, int(n/fillAlone)+1)
	if workers == 1 {
		return f.addScan(ctx, n, scan, 0, 1<<64-1)
	}
	own := make([]*Filter, workers)
	own[0] = f
	for i := 1; i < workers; i++ {
		memory, release := newScratch(len(f.bits))
		defer release()
		other := *f
		other.bits, other.setBits, other.indices = memory, 0, make([]uint64, 0, f.k)
		own[i] = &other
	}
	err := parallel(workers, func(i int) error {
		first, last := shardHashes(i, workers)
		return own[i].addScan(ctx, n/uint64(workers), scan, first, last)
	})
	if err != nil {
		return err
	}
	for _, other := range own[1:] {
		f.or(other.bits)
	}
	return nil
}

// addScan adds the keys of a range of hashes, about n.
func (f *Filter) addScan(ctx context.Context, n uint64, scan Scan, first, last uint64) error {
	d := newDealer(f, n)
	if d == nil {
		return scanBatches(ctx, scan, first, last, f.AddAll)
	}
	defer d.close()
	return scanBatches(ctx, scan, first, last, d.addAll)
}

// Fill adds the keys of a scan, as [Counting.AddAll] does.
func (c *Counting) Fill(ctx context.Context, scan Scan) error {
	return scanBatches(ctx, scan, 0, 1<<64-1, c.AddAll)
}

// scanBatches calls add with batches of the keys of a range of hashes.
func scanBatches(ctx context.Context, scan Scan, first, last uint64, add func(keys [][]byte)) error {
	var batch keyBatch
	err := scan(first, last, func(_ uint64, key []byte) bool {
		if batch.add(key) < fillBatch {
			return true
		}
		add(batch.take())
		return ctx.Err() == nil
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		add(batch.take())
	}
	return err
}

// keyBatch holds copies of some keys.
type keyBatch struct {
	text []byte
	ends []int
	keys [][]byte
}

// add adds a copy of key, and returns the number of keys.
func (b *keyBatch) add(key []byte) int {
	b.text = append(b.text, key...)
	b.ends = append(b.ends, len(b.text))
	return len(b.ends)
}

// take empties the batch and returns its keys, which are valid until the next add.
func (b *keyBatch) take() [][]byte {
	b.keys = b.keys[:0]
	start := 0
	for _, end := range b.ends {
		b.keys = append(b.keys, b.text[start:end])
		start = end
	}
	b.text, b.ends = b.text[:0], b.ends[:0]
	return b.keys
}

// or sets the bits that are set in other, a bitmap of the same length.
func (f *Filter) or(other []byte) { f.setBits += orInto(f.bits, other) }

// orInto sets in the first bytes of into the bits that are set in piece, and
// returns how many of them were not set before.
func orInto(into, piece []byte) (added uint64) {
	into = into[:len(piece)]
	for len(piece) >= 8 {
		was := binary.LittleEndian.Uint64(into)
		is := was | binary.LittleEndian.Uint64(piece)
		binary.LittleEndian.PutUint64(into, is)
		added += uint64(bits.OnesCount64(is ^ was))
		into, piece = into[8:], piece[8:]
	}
	for i, b := range piece {
		added += uint64(bits.OnesCount8(b &^ into[i]))
		into[i] |= b
	}
	return added
}

// countBits returns the number of bits that are set.
func countBits(b []byte) (n uint64) {
	for ; len(b) >= 8; b = b[8:] {
		n += uint64(bits.OnesCount64(binary.LittleEndian.Uint64(b)))
	}
	for _, b := range b {
		n += uint64(bits.OnesCount8(b))
	}
	return n
}

// parallel calls do with 0 … n-1, on all cores, and returns the first error. It
// starts no further calls after an error.
func parallel(n int, do func(i int) error) error {
	var (
		mu    sync.Mutex
		next  int
		first error
		group sync.WaitGroup
	)
	take := func() (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || first != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := do(i); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return first
}
