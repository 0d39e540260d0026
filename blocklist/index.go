package blocklist

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/minio/highwayhash"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// ErrTooLarge is wrapped where a list exceeds what an index in memory holds:
// 4 GiB of text, 2^32 lines, 65,535 files, or a key of 32 KiB.
var ErrTooLarge = errors.New("too large for an index in memory")

// hashKey keys every HighwayHash of this process, so that nobody can prepare
// entries or files that collide.
var hashKey = func() (key [highwayhash.Size]byte) {
	rand.Read(key[:]) // never fails, see crypto/rand
	return key
}()

// hashOf is the hash that indexes are ordered by.
func hashOf(key []byte) uint64 { return highwayhash.Sum64(key, hashKey[:]) }

// index holds the keys of one list, exactly, and where each came from. It is
// immutable. An entry takes 24 bytes, up to 12 more for a comment that no other
// entry shares, and the text of key and comment.
type index struct {
	entries []entry // ordered by hash, then key; a key once
	remarks []remark
	text    []byte // keys, reasons and notes
	kinds   sender.KindSet
}

// entry is one key of an index.
type entry struct {
	hash   uint64
	key    uint32 // where the key begins in text
	line   uint32
	remark uint32 // index in remarks
	file   uint16 // index in the list's files
	length uint16 // of the key; the highest bit marks an exception
}

const (
	exceptionBit = 1 << 15
	maxKey       = exceptionBit - 1
)

// remark is where a comment stands in text: the reason at start, the note
// behind it.
type remark struct{ start, reason, note uint32 }

func (e *entry) exception() bool { return e.length&exceptionBit != 0 }

func (x *index) key(e *entry) []byte {
	return x.text[e.key:][:e.length&^exceptionBit]
}

func (x *index) reason(e *entry) string {
	r := x.remarks[e.remark]
	return string(x.text[r.start:][:r.reason])
}

func (x *index) note(e *entry) string {
	r := x.remarks[e.remark]
	return string(x.text[r.start+r.reason:][:r.note])
}

// lookup finds a key by its hash (see hashOf) and compares it with the stored
// text. It does not allocate.
func (x *index) lookup(hash uint64, key []byte) *entry {
	low, high := 0, len(x.entries)
	for low < high {
		if mid := int(uint(low+high) >> 1); x.entries[mid].hash < hash {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; low < len(x.entries) && x.entries[low].hash == hash; low++ {
		if e := &x.entries[low]; bytes.Equal(x.key(e), key) {
			return e
		}
	}
	return nil
}

// size is what the index takes, in bytes.
func (x *index) size() int {
	return len(x.entries)*24 + len(x.remarks)*12 + len(x.text)
}

// indexBuilder collects entries for an index.
type indexBuilder struct {
	index
	comments map[[2]string]uint32 // reason and note → index in remarks
}

func newIndexBuilder() *indexBuilder {
	b := &indexBuilder{comments: map[[2]string]uint32{}}
	b.remarks = []remark{{}} // of entries without a comment
	b.comments[[2]string{}] = 0
	return b
}

// add adds an entry from the list's file of that number.
func (b *indexBuilder) add(file int, e listfile.Entry) error {
	if len(e.Key) > maxKey || file > math.MaxUint16 || uint64(e.Line) > math.MaxUint32 {
		return fmt.Errorf("%w: line %d", ErrTooLarge, e.Line)
	}
	r, ok := b.comments[[2]string{e.Reason, e.Note}]
	grown := len(b.text) + len(e.Key)
	if !ok {
		grown += len(e.Reason) + len(e.Note)
	}
	if uint64(grown) > math.MaxUint32 {
		return fmt.Errorf("%w: line %d", ErrTooLarge, e.Line)
	}
	if !ok {
		r = uint32(len(b.remarks))
		b.remarks = append(b.remarks, remark{uint32(len(b.text)), uint32(len(e.Reason)), uint32(len(e.Note))})
		b.text = append(append(b.text, e.Reason...), e.Note...)
		b.comments[[2]string{e.Reason, e.Note}] = r
	}
	length := uint16(len(e.Key))
	if e.Exception {
		length |= exceptionBit
	}
	start := uint32(len(b.text))
	b.text = append(b.text, e.Key...)
	b.entries = append(b.entries, entry{
		hash: hashOf(b.text[start:]), key: start, length: length,
		line: uint32(e.Line), file: uint16(file), remark: r,
	})
	b.kinds = b.kinds.With(e.Kind)
	return nil
}

// finish orders what was added and drops the repetitions of a key: an exception
// stays rather than the entry that it cancels, then the earlier line. The
// builder is of no use afterwards.
func (b *indexBuilder) finish() (x *index, duplicates int) {
	slices.SortFunc(b.entries, func(p, q entry) int {
		if c := cmp.Compare(p.hash, q.hash); c != 0 {
			return c
		}
		return cmp.Or(
			bytes.Compare(b.key(&p), b.key(&q)),
			-cmp.Compare(p.length, q.length), // same key: the exception bit
			cmp.Compare(p.file, q.file),
			cmp.Compare(p.line, q.line),
		)
	})
	unique := slices.CompactFunc(b.entries, func(p, q entry) bool {
		return p.hash == q.hash && bytes.Equal(b.key(&p), b.key(&q))
	})
	duplicates = len(b.entries) - len(unique)
	// Copied, because appending left room for up to as much again.
	return &index{
		entries: slices.Concat(unique),
		remarks: slices.Concat(b.remarks),
		text:    slices.Concat(b.text),
		kinds:   b.kinds,
	}, duplicates
}
