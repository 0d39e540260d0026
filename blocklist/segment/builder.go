package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/minio/highwayhash"
)

// BuildOptions say how to build a segment.
type BuildOptions struct {
	// Dir is the directory of temporary files; "" means [os.TempDir].
	Dir string

	// Key is required, and must not be changed.
	Key *Key

	// Memory is the number of bytes of entries that are kept in memory; others go to
	// a temporary file. 0 means 64 MiB. Each Adder takes up to 8 MiB more, and each
	// goroutine of Finish about 1% of the size of the segment.
	Memory int
}

const (
	defaultMemory = 64 << 20

	// partitions is the number of ranges of hashes, by the first byte of the hash.
	// Each range is sorted in memory.
	partitions = 256

	// chunkSize is the number of bytes of a partition that are written at once.
	chunkSize = 32 << 10
)

var errFinished = errors.New("the segment is already finished or aborted")

// Builder collects entries for a segment.
//
// Each range of hashes has a chunk of entries. A full chunk is kept in memory or goes
// to a temporary file. Finish sorts one range after another.
type Builder struct {
	o        BuildOptions
	hash     func(key []byte) uint64 // that of the key; tests replace it
	comments dictionary

	mu     sync.Mutex
	adders []*Adder
	parts  [partitions]partition
	size   int64    // size of all partitions
	kept   int      // number of their bytes in memory
	file   *os.File // the temporary file for others
	end    int64    // size of that file
	err    error    // why the build can no longer succeed
}

// partition is a range of hashes.
type partition struct {
	kept    [][]byte
	spilled []extent
	size    int64 // size of both
}

// extent is the place of a chunk in the temporary file, and its checksum, since that
// file is not trusted either.
type extent struct {
	offset   int64
	size     int
	checksum uint64
}

// NewBuilder begins a segment.
func NewBuilder(o BuildOptions) *Builder {
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
	return &Builder{o: o, hash: o.Key.Hash}
}

// Adder adds entries for one goroutine. Several may work at the same time.
type Adder struct {
	builder *Builder
	chunks  [partitions][]byte
	record  []byte // reused
	numbers map[comment]uint16
	repeats repeats
	markers markers
}

// Adder returns an Adder, for one goroutine.
func (b *Builder) Adder() *Adder {
	a := &Adder{builder: b, numbers: map[comment]uint16{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.adders = append(b.adders, a)
	return a
}

// recordHead is the size of hash and length before a record in a chunk.
const recordHead = 8 + 4

// Add adds an entry and keeps none of its strings. An error that wraps [ErrEntry]
// concerns this entry alone, any other the whole build.
func (a *Adder) Add(e Entry) error {
	if err := e.check(); err != nil {
		return err
	}
	if e.For != "" {
		if err := a.mark(e.For); err != nil {
			return err
		}
	}
	number, shared := a.number(comment{e.Reason, e.Note})
	a.record = appendRecord(append(a.record[:0], make([]byte, recordHead)...), &e, number, shared)
	return a.append(a.seal(a.record), a.record)
}

// seal writes hash and length before a record, and returns the hash.
func (a *Adder) seal(record []byte) (hash uint64) {
	key, _, _ := recordKey(record[recordHead:])
	hash = a.builder.hash(key)
	binary.LittleEndian.PutUint64(record, hash)
	binary.LittleEndian.PutUint32(record[8:], uint32(len(record)-recordHead))
	return hash
}

// number returns the number of a comment, if it is shared.
func (a *Adder) number(c comment) (number uint16, ok bool) {
	if c == (comment{}) {
		return 0, false
	}
	if number, ok = a.numbers[c]; ok {
		return number, true
	}
	own, number, ok := a.builder.comments.number(c)
	if ok {
		a.numbers[own] = number
	}
	return number, ok
}

// append appends a record to the chunk of its partition.
func (a *Adder) append(hash uint64, record []byte) error {
	part := int(hash >> 56)
	chunk := a.chunks[part]
	if len(chunk) > 0 && len(chunk)+len(record) > chunkSize {
		if a.builder.uneven(part) {
			chunk = a.repeats.drop(chunk)
		}
		if len(chunk) > chunkSize/2 {
			var err error
			if chunk, err = a.builder.put(part, chunk); err != nil {
				return err
			}
		}
	}
	a.chunks[part] = append(chunk, record...)
	return nil
}

// put stores a chunk, and returns an empty one.
func (b *Builder) put(part int, chunk []byte) ([]byte, error) {
	spill, offset, err := b.place(part, chunk, highwayhash.Sum64(chunk, b.o.Key[:]))
	if err != nil {
		return nil, err
	}
	if spill == nil {
		return make([]byte, 0, chunkSize), nil
	}
	if _, err := spill.WriteAt(chunk, offset); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		return nil, b.fail(err)
	}
	return chunk[:0], nil
}

// place keeps a chunk in memory, or returns its place in the temporary file. Each
// adder writes its own chunks.
func (b *Builder) place(part int, chunk []byte, checksum uint64) (spill *os.File, offset int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, 0, b.err
	}
	p := &b.parts[part]
	p.size += int64(len(chunk))
	b.size += int64(len(chunk))
	if b.kept+len(chunk) <= b.o.Memory {
		b.kept += len(chunk)
		p.kept = append(p.kept, chunk)
		return nil, 0, nil
	}
	if b.file == nil {
		if b.file, err = temporary(b.o.Dir); err != nil {
			return nil, 0, b.fail(err)
		}
	}
	offset = b.end
	b.end += int64(len(chunk))
	p.spilled = append(p.spilled, extent{offset, len(chunk), checksum})
	return b.file, offset, nil
}

// fail records the first reason why the build can no longer succeed. The caller holds
// the mutex.
func (b *Builder) fail(err error) error {
	if b.err == nil {
		b.err = fmt.Errorf("a temporary file for entries: %w", err)
	}
	return b.err
}

// flush stores the chunks of all adders, and returns the first error of the build.
func (b *Builder) flush() error {
	b.mu.Lock()
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return err
	}
	for _, a := range b.adders {
		for part, chunk := range a.chunks {
			if len(chunk) == 0 {
				continue
			}
			if _, err := b.put(part, chunk); err != nil {
				return err
			}
			a.chunks[part] = nil
		}
	}
	return nil
}

// Abort ends the build and leaves no file. It does nothing after Finish. No Adder may
// be at work.
func (b *Builder) Abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = errFinished
	}
	b.adders = nil
	b.parts = [partitions]partition{}
	if b.file != nil {
		closeTemporary(b.file)
		b.file = nil
	}
}
