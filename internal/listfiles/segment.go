package listfiles

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"runtime"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// Commands that compare whole lists put them into segments, which take little
// memory however long the lists are, and have the keys in one order.

// NewKey returns a random key for the segments of one command.
func NewKey() *segment.Key {
	key := new(segment.Key)
	rand.Read(key[:]) // never fails
	return key
}

// Builder makes a segment of files.
type Builder struct {
	ctx     context.Context
	Builder *segment.Builder
	files   int
	Leave   func(listfile.Entry) bool // entries to be left out; nil: none
}

func NewBuilder(ctx context.Context, key *segment.Key) *Builder {
	return &Builder{ctx: ctx, Builder: segment.NewBuilder(segment.BuildOptions{Key: key})}
}

// Add adds a file's entries.
func (b *Builder) Add(in io.Reader, o listfile.Options) (listfile.Result, error) {
	file := b.files
	b.files++
	sink := func() func(listfile.Entry) error {
		adder := b.Builder.Adder()
		return func(e listfile.Entry) error {
			if b.Leave != nil && b.Leave(e) {
				return nil
			}
			return adder.Add(segment.Entry{
				For: e.For, Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Defer: e.Defer,
				Until: e.Until, File: file, Line: e.Line, Reason: e.Reason, Note: e.Note,
			})
		}
	}
	return listfile.ReadParallel(b.ctx, in, o, runtime.GOMAXPROCS(0), sink, nil)
}

func (b *Builder) Finish() (*segment.Segment, error) {
	return b.Builder.Finish(b.ctx, "", segment.Header{})
}

// Segment builds the segment of a configured list. It leaves out the entries for which leave
// reports true; leave may be nil.
func Segment(s *Scan, l *List, key *segment.Key, leave func(listfile.Entry) bool) (*segment.Segment, error) {
	b := NewBuilder(s.Ctx, key)
	b.Leave = leave
	defer b.Builder.Abort()
	for _, path := range l.Paths {
		o := l.Options
		o.Now = 0 // entries whose time is over do not count
		in, err := OpenListFile(s.Ctx, setup.Opener(l.List), path, s.Bar)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.Name, err)
		}
		_, err = b.Add(in, o)
		in.Close()
		if err != nil {
			return nil, fmt.Errorf("list %s: %s: %w", l.Name, term.ShortPath(path), err)
		}
	}
	return b.Finish()
}

// Record is a record with the hash by which it is ordered.
type Record struct {
	hash uint64
	segment.Record
}

// Records returns all records of a segment in its order. If reading fails, it sets *fail and
// ends.
func Records(s *segment.Segment, key *segment.Key, fail *error) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		err := s.Records(func(r segment.Record) bool {
			return yield(Record{key.Hash([]byte(r.Indexed())), r})
		})
		if err != nil {
			*fail = err
		}
	}
}

// Compare orders records as segments do.
func (r Record) Compare(s Record) int {
	switch {
	case r.hash < s.hash:
		return -1
	case r.hash > s.hash:
		return 1
	}
	return strings.Compare(r.Indexed(), s.Indexed())
}

// Entry returns the record as a list's entry.
func (r Record) Entry() listfile.Entry {
	return listfile.Entry{
		For: r.For, Key: r.Key, Kind: sender.Kind(r.Kind), Exception: r.Exception, Defer: r.Defer,
		Until: r.Until, Line: r.Line, Reason: r.Reason, Note: r.Note,
	}
}
