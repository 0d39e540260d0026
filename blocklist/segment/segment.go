package segment

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/minio/highwayhash"
)

// Why a file is no segment to be used. Use errors.Is.
var (
	ErrDamaged = errors.New("damaged")
	ErrFormat  = errors.New("of another format version")
	ErrKey     = errors.New("made with another key")
)

// ErrEntry is wrapped where an entry is none that a segment can hold.
var ErrEntry = errors.New("no entry for a segment")

// Key is the secret under which keys are hashed (HighwayHash), so that nobody
// can prepare entries that collide.
type Key [32]byte

// Hash returns the hash by which segments are ordered. It does not allocate.
func (k *Key) Hash(key []byte) uint64 { return highwayhash.Sum64(key, k[:]) }

// Entry is one entry of a list.
type Entry struct {
	Key string // of the filter and the index; at most MaxKey bytes

	// Kind is the caller's, 0 to 7; a segment knows which kinds it holds.
	Kind uint8

	Exception, Defer bool

	Until int64 // seconds since 1970; 0: never
	File  int   // the caller's number of the file, from 0
	Line  int   // from 1

	Reason, Note string
}

// Record is an entry as a segment gives it back. Its strings are copies: they
// outlive the segment.
type Record = Entry

// What an entry may hold, in bytes.
const (
	MaxKey     = 1 << 11
	MaxComment = 1 << 16 // reason and note together
)

func (e *Entry) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("line %d: %w: %s", e.Line, ErrEntry, fmt.Sprintf(format, args...))
	}
	switch {
	case len(e.Key) > MaxKey:
		return fail("a key of %d bytes, where %d are the most", len(e.Key), MaxKey)
	case len(e.Reason)+len(e.Note) > MaxComment:
		return fail("a comment of %d bytes, where %d are the most", len(e.Reason)+len(e.Note), MaxComment)
	case e.Kind > 7:
		return fail("kind %d, where 7 is the last", e.Kind)
	case e.File < 0 || e.Line < 0:
		return fail("a negative number of file (%d) or line", e.File)
	}
	return nil
}

// Header is what the caller keeps in a segment, and gets back unchanged: what
// the segment was made from.
type Header struct {
	Source  [32]byte // a digest of the list's source
	Options [32]byte // a digest of the options that it was read with
	Meta    []byte   // anything else
}

// Segment is the exact index of one list. It is immutable and safe for use by
// many goroutines. Its memory is given back once nothing refers to it. The zero
// Segment has no entries.
type Segment struct {
	header
	key  *Key
	path string

	data  []byte       // the whole file
	unmap func([]byte) // nil for data in the heap

	blocks []byte // of data

	// Copies of parts of data.
	comments []byte
	firsts   []byte // the first hash of each block
	places   []byte // the place of each block

	verified []atomic.Uint32 // a bit for each block that matched its checksum
}

// Len returns how many entries there are.
func (s *Segment) Len() uint64 { return s.entries }

// Duplicates returns how many entries were left out, because another had their key.
func (s *Segment) Duplicates() uint64 { return s.duplicates }

// Exceptions returns how many of the entries are exceptions.
func (s *Segment) Exceptions() uint64 { return s.exceptions }

// Kinds returns the set of the entries' kinds, a bit each.
func (s *Segment) Kinds() uint8 { return s.kinds }

// NextUntil returns the earliest Until of an entry, 0 if none has one.
func (s *Segment) NextUntil() int64 { return s.nextUntil }

// Size returns the size of the file, in bytes.
func (s *Segment) Size() int64 { return int64(len(s.data)) }

// Header returns what the caller of [Builder.Finish] wanted to be kept. Meta is a
// copy.
func (s *Segment) Header() Header {
	h := s.caller
	h.Meta = append([]byte(nil), h.Meta...)
	return h
}

// Digest returns the HighwayHash-256 of the entries under the segment's key. Segments
// of the same digest hold the same. The opposite is true as well, while a list
// has no more than [SharedComments] different comments; which of more are shared
// depends on which came first.
func (s *Segment) Digest() [32]byte { return s.digest }

// Path returns the segment's file, "" where it has none with a name.
func (s *Segment) Path() string { return s.path }
