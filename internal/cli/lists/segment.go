package lists

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

// newSegmentKey is a key for the segments of one command.
func newSegmentKey() *segment.Key {
	key := new(segment.Key)
	rand.Read(key[:]) // never fails
	return key
}

// segmentBuilder makes a segment of files.
type segmentBuilder struct {
	ctx     context.Context
	builder *segment.Builder
	files   int
	leave   func(listfile.Entry) bool // entries to be left out; nil: none
}

func newSegmentBuilder(ctx context.Context, key *segment.Key) *segmentBuilder {
	return &segmentBuilder{ctx: ctx, builder: segment.NewBuilder(segment.BuildOptions{Key: key})}
}

// add adds a file's entries.
func (b *segmentBuilder) add(in io.Reader, o listfile.Options) (listfile.Result, error) {
	file := b.files
	b.files++
	sink := func() func(listfile.Entry) error {
		adder := b.builder.Adder()
		return func(e listfile.Entry) error {
			if b.leave != nil && b.leave(e) {
				return nil
			}
			return adder.Add(segment.Entry{
				Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Defer: e.Defer,
				Until: e.Until, File: file, Line: e.Line, Reason: e.Reason, Note: e.Note,
			})
		}
	}
	return listfile.ReadParallel(b.ctx, in, o, runtime.GOMAXPROCS(0), sink, nil)
}

func (b *segmentBuilder) finish() (*segment.Segment, error) {
	return b.builder.Finish(b.ctx, "", segment.Header{})
}

// segmentOf makes the segment of a list of the configuration, without the entries
// that leave, if not nil, reports.
func segmentOf(s *scanning, l *listAt, key *segment.Key, leave func(listfile.Entry) bool) (*segment.Segment, error) {
	b := newSegmentBuilder(s.ctx, key)
	b.leave = leave
	defer b.builder.Abort()
	for _, path := range l.files {
		o := l.options
		o.Now = 0 // entries whose time is over do not count
		in, err := openListFile(s.ctx, setup.Opener(l.List), path, s.bar)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.Name, err)
		}
		_, err = b.add(in, o)
		in.close()
		if err != nil {
			return nil, fmt.Errorf("list %s: %s: %w", l.Name, term.ShortPath(path), err)
		}
	}
	return b.finish()
}

// hashedRecord is a record with the hash by which it is ordered.
type hashedRecord struct {
	hash uint64
	segment.Record
}

// records are all records of a segment in its order. Fail is set where they end
// early.
func records(s *segment.Segment, key *segment.Key, fail *error) iter.Seq[hashedRecord] {
	return func(yield func(hashedRecord) bool) {
		err := s.Records(func(r segment.Record) bool {
			return yield(hashedRecord{key.Hash([]byte(r.Key)), r})
		})
		if err != nil {
			*fail = err
		}
	}
}

// compare orders records as segments do.
func (r hashedRecord) compare(s hashedRecord) int {
	switch {
	case r.hash < s.hash:
		return -1
	case r.hash > s.hash:
		return 1
	}
	return strings.Compare(r.Key, s.Key)
}

// entry is the record as a list's entry.
func (r hashedRecord) entry() listfile.Entry {
	return listfile.Entry{
		Key: r.Key, Kind: sender.Kind(r.Kind), Exception: r.Exception, Defer: r.Defer,
		Until: r.Until, Line: r.Line, Reason: r.Reason, Note: r.Note,
	}
}

// kindOf is the kind that a key of a list has.
func kindOf(key string) sender.Kind {
	switch {
	case key == "<>":
		return sender.KindNull
	case strings.HasPrefix(key, "@"):
		return sender.KindAtDomain
	case strings.HasSuffix(key, "@"):
		return sender.KindLocal
	case strings.Contains(key, "@"):
		return sender.KindAddress
	case strings.HasPrefix(key, "*."):
		return sender.KindSubdomains
	}
	return sender.KindDomain
}
