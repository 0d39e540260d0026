package segment

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/minio/highwayhash"
)

// Why a file cannot be used. Use errors.Is.
var (
	ErrDamaged = errors.New("damaged")
	ErrFormat  = errors.New("another format version")
	ErrKey     = errors.New("made with another key")
)

// ErrEntry is wrapped by the error for an entry that a segment cannot hold.
var ErrEntry = errors.New("not an entry for a segment")

// Key is the secret with which keys are hashed (HighwayHash), so that nobody can prepare
// entries that collide.
type Key [32]byte

// Hash returns the hash of a key, which orders segments. It does not allocate.
func (k *Key) Hash(key []byte) uint64 { return highwayhash.Sum64(key, k[:]) }

// Entry is one entry of a list.
type Entry struct {
	// For is the recipient's side of an entry that counts for some recipients only, ""
	// for other entries. Key is the sender's. Together they have at most MaxKey bytes,
	// and no tab.
	For, Key string

	// Kind is the caller's kind of entry, 0 to 6.
	Kind uint8

	Exception, Defer bool

	Until int64 // seconds since 1970; 0 means never
	File  int   // the caller's number of the file, from 0
	Line  int   // line number, from 1

	Reason, Note string
}

// Record is an entry that a segment returns. Its strings are copies and outlive the
// segment.
type Record = Entry

// The limits of an entry, in bytes.
const (
	MaxKey     = 1 << 11
	MaxComment = 1 << 16 // reason and note together
)

func (e *Entry) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("line %d: %w: %s", e.Line, ErrEntry, fmt.Sprintf(format, args...))
	}
	switch {
	case len(e.Key)+len(e.For) > MaxKey:
		return fail("a key of %d bytes exceeds the limit of %d", len(e.Key)+len(e.For), MaxKey)
	case e.For != "" && (e.Key == "" || strings.Contains(e.For, forEnd) || strings.Contains(e.Key, forEnd)):
		return fail("an entry for a recipient needs a key, and no tab in either")
	case len(e.Reason)+len(e.Note) > MaxComment:
		return fail("a comment of %d bytes exceeds the limit of %d", len(e.Reason)+len(e.Note), MaxComment)
	case e.Kind >= markerKind:
		return fail("kind %d exceeds the limit of %d", e.Kind, markerKind-1)
	case e.File < 0 || e.Line < 0:
		return fail("a negative number of a file (%d) or a line", e.File)
	}
	return nil
}

// Header is the caller's data in a segment: what it was made from.
type Header struct {
	Source  [32]byte // a digest of the list's source
	Options [32]byte // a digest of the options that it was read with
	Meta    []byte   // anything else
}

// Segment is the exact index of one list. It is immutable and safe for concurrent use.
// Its memory is unmapped once nothing refers to it. The zero Segment has no entries.
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

	verified []atomic.Uint32 // a bit for each block whose checksum was compared
}

// Len returns the number of entries.
func (s *Segment) Len() uint64 { return s.entries - s.markers }

// Keys returns the number of keys that [Segment.ScanKeys] yields: those of entries and of
// markers.
func (s *Segment) Keys() uint64 { return s.entries }

// Duplicates returns the number of entries that were dropped because another had their
// key.
func (s *Segment) Duplicates() uint64 { return s.duplicates }

// Exceptions returns the number of exceptions.
func (s *Segment) Exceptions() uint64 { return s.exceptions }

// Kinds returns the set of the entries' kinds: bit i for kind i. Of entries for recipients
// it is the kind of the sender's side.
func (s *Segment) Kinds() uint8 { return s.kinds &^ (1 << markerKind) }

// NextUntil returns the earliest Until of an entry, 0 if none has one.
func (s *Segment) NextUntil() int64 { return s.nextUntil }

// Size returns the size of the file, in bytes.
func (s *Segment) Size() int64 { return int64(len(s.data)) }

// Header returns the Header of [Builder.Finish]. Meta is a copy.
func (s *Segment) Header() Header {
	h := s.caller
	h.Meta = append([]byte(nil), h.Meta...)
	return h
}

// Digest returns the HighwayHash-256 of the entries under the segment's key. Segments
// with equal digests have equal entries. The converse holds for lists with at most
// [SharedComments] different comments; beyond that the digest depends on their order.
func (s *Segment) Digest() [32]byte { return s.digest }

// Path returns the path of the segment's file, "" if it has none.
func (s *Segment) Path() string { return s.path }
