package listedit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/rotated"
)

// Search says which records [Log.Newest] looks for.
type Search struct {
	// Since ends the search at records that are older; zero: it has no end.
	Since time.Time

	// Line, if not nil, reports whether a line may be wanted. Others are not parsed.
	Line func(line []byte) bool

	// Found is called with each record, until it returns false.
	Found func(Record) bool

	// Skipped, if not nil, is called with the name of a log and what is wrong with a line that is
	// not a record, or with the log.
	Skipped func(name string, what error)
}

const (
	// maxSearch bounds how much of the logs one search reads, unpacked.
	maxSearch = 256 << 20

	// clockSteps is how much older than Since a record must be to end a search: clocks
	// are set back.
	clockSteps = 24 * time.Hour

	// readBack is how much is read at a time.
	readBack = 256 << 10
)

// errEnough ends a search.
var errEnough = errors.New("enough")

// Newest searches the log and what was rotated away of it, from the newest record to the
// oldest. Lines that are not records are skipped. Complete is false if the search has ended
// at its bound, or a log could not be read.
func (l *Log) Newest(ctx context.Context, s Search) (complete bool, err error) {
	names, err := l.byAge(s.Since)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil // nothing was changed yet
	}
	if err != nil {
		return false, err
	}
	complete = true
	left := int64(maxSearch)
	for _, name := range names {
		err := l.backwards(ctx, name, &left, func(line []byte) error { return s.line(name, line) })
		switch {
		case errors.Is(err, errEnough):
			return complete, nil
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case left <= 0:
			return false, nil
		case err != nil:
			complete = false
			s.skip(name, err)
		}
	}
	return complete, nil
}

// byAge returns the names of the logs, the newest first, without those whose records are all
// older than since.
func (l *Log) byAge(since time.Time) ([]string, error) {
	names, err := l.Files()
	if err != nil {
		return nil, err
	}
	changed := map[string]time.Time{}
	for _, name := range names {
		if info, err := atomicfile.In(l.Dir).StatFile(name); err == nil {
			changed[name] = info.ModTime()
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return changed[name].Before(since) })
	slices.SortStableFunc(names, func(a, b string) int {
		if a == LogName || b == LogName {
			return cmp.Compare(a, b) // it is the shortest name
		}
		return changed[b].Compare(changed[a])
	})
	return names, nil
}

func (s *Search) skip(name string, what error) {
	if s.Skipped != nil {
		s.Skipped(name, what)
	}
}

// line looks at one line of a log.
func (s *Search) line(name string, text []byte) error {
	if s.Line != nil && !s.Line(text) {
		return nil
	}
	var r Record
	err := json.Unmarshal(text, &r)
	if torn := bytes.LastIndex(text, []byte(`{"time":`)); err != nil && torn > 0 {
		s.skip(name, fmt.Errorf("a line's first %d bytes are not a record: %w", torn, err))
		err = json.Unmarshal(text[torn:], &r) // a loss of power cut the line before
	}
	if err == nil && (r.Time.IsZero() || r.Command == "") {
		err = errors.New("it has no time or no command")
	}
	switch {
	case err != nil:
		s.skip(name, fmt.Errorf("a line is not a record: %w", err))
		return nil
	case r.Time.Before(s.Since.Add(-clockSteps)):
		return errEnough
	case r.Time.Before(s.Since):
		return nil
	}
	r.Time = r.Time.UTC()
	if !s.Found(r) {
		return errEnough
	}
	return nil
}

// backwards calls do for each line of a log, the last one first.
func (l *Log) backwards(ctx context.Context, name string, left *int64, do func(line []byte) error) error {
	file, err := atomicfile.In(l.Dir).Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	var content io.ReaderAt = file
	size := int64(0)
	if rotated.Packed(name) {
		text, err := unpack(name, stoppable{ctx, file}, *left)
		if err != nil {
			return err
		}
		content, size = bytes.NewReader(text), int64(len(text))
	} else {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		size = info.Size()
	}
	return linesBack(ctx, content, size, left, do)
}

// unpack returns the content of a packed log.
func unpack(name string, r io.Reader, most int64) ([]byte, error) {
	content, err := rotated.Unpack(name, r)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(io.LimitReader(content, most))
}

// linesBack calls do for each line of a text that is not empty, the last one first.
func linesBack(ctx context.Context, r io.ReaderAt, size int64, left *int64, do func(line []byte) error) error {
	var rest []byte // the beginning of what was read, which has no line end before it
	for size > 0 {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		n := min(size, readBack)
		if *left -= n; *left < 0 || len(rest) > maxRecord {
			*left = 0
			return nil
		}
		size -= n
		piece := make([]byte, n, int(n)+len(rest))
		if _, err := r.ReadAt(piece, size); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		rest = append(piece, rest...)
		for {
			pos := bytes.LastIndexByte(rest, '\n')
			if pos < 0 {
				break
			}
			if err := doLine(rest[pos+1:], do); err != nil {
				return err
			}
			rest = rest[:pos]
		}
	}
	return doLine(rest, do)
}

func doLine(line []byte, do func([]byte) error) error {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	return do(line)
}
