package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/internal/atomicfile"
)

// parallelFrom is the size from which on a file is read by several workers.
const parallelFrom = 1 << 20

// buildError is an error of the file that the index is written to, and not of the list.
type buildError struct{ error }

func (e buildError) Unwrap() error { return e.error }

// collector reads a list's files into a segment.
type collector struct {
	options   readOptions
	omissions Omissions
	builder   *segment.Builder
	now       time.Time // when reading began
	open      func(ctx context.Context, path string, use func(io.Reader) error) (stamp, error)
	follow    func(path string, from io.Reader) io.Reader // may be nil
	adders    []*segment.Adder                            // one for each worker, used for file after file

	content
	long  *blocklist.FileProblem // the first line that is too long
	empty []string               // files without a byte, once unpacked

	// Of the file that is being read.
	file    int
	path    string
	workers []*worker
}

// worker is what one goroutine counts.
type worker struct {
	exceptions, protected, disallowed, refused int
	ending                                     [len(horizons) + 1]int // see [content]

	// The first problems that it came upon; workers share a file.
	problems []blocklist.FileProblem
}

// read reads one of the list's files, and returns the stamp of what was read.
func (c *collector) read(ctx context.Context, file int, want stamp) (stamp, error) {
	c.file, c.path, c.workers = file, want.Path, nil
	stats := blocklist.FileStats{Path: want.Path, Size: want.Size, Modified: time.Unix(0, want.Modified)}
	workers := 1
	if want.Size >= parallelFrom {
		workers = runtime.GOMAXPROCS(0)
	}
	var problems []blocklist.FileProblem
	parse := func(r io.Reader) error {
		if c.follow != nil {
			r = c.follow(want.Path, r)
		}
		res, err := listfile.ReadParallel(ctx, r, c.options.Options, workers, c.sink, func(p listfile.Problem) {
			if p.TooLong && c.long == nil {
				c.long = &blocklist.FileProblem{File: want.Path, Problem: p}
			}
			problems = keepProblem(problems, blocklist.FileProblem{File: want.Path, Problem: p})
		})
		count(&stats, res)
		if res.Lines == 0 {
			c.empty = append(c.empty, want.Path)
		}
		return c.explain(err)
	}
	got, err := c.open(ctx, want.Path, parse)
	if err != nil {
		return got, err
	}
	if got.attributes != want.attributes || want.Digest != [len(want.Digest)]byte{} && got.Digest != want.Digest {
		return got, &fs.PathError{Op: "read", Path: want.Path, Err: ErrChanged}
	}
	c.add(stats, problems)
	return got, nil
}

// explain adds the path to an error of reading a file.
func (c *collector) explain(err error) error {
	var build buildError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &build):
		return err
	case errors.Is(err, listfile.ErrTooBig):
		err = fmt.Errorf("%w: %w", ErrTooBig, atomicfile.WithoutPath(err))
	default:
		err = atomicfile.WithoutPath(err)
	}
	return &fs.PathError{Op: "read", Path: c.path, Err: err}
}

// add adds the counts and problems of a file to those of the list.
func (c *collector) add(stats blocklist.FileStats, problems []blocklist.FileProblem) {
	for _, w := range c.workers {
		c.Exceptions += w.exceptions
		for i := range w.ending {
			c.Ending[i] += w.ending[i]
		}
		stats.Protected += w.protected
		stats.Disallowed += w.disallowed
		stats.Entries -= w.protected + w.disallowed + w.refused
		stats.Invalid += w.refused
		problems = append(problems, w.problems...)
	}
	slices.SortStableFunc(problems, func(p, q blocklist.FileProblem) int { return cmp.Compare(p.Line, q.Line) })
	c.Entries += stats.Entries
	c.Invalid += stats.Invalid
	c.Unsupported += stats.Unsupported
	c.Expired += stats.Expired
	c.Protected += stats.Protected
	c.Disallowed += stats.Disallowed
	c.Skipped += stats.Skipped
	c.Files = append(c.Files, stats)
	c.Problems = append(c.Problems, firstOfEach(problems)...)
}

// count copies what the reader of lists has counted.
func count(f *blocklist.FileStats, r listfile.Result) {
	f.Entries, f.Invalid, f.Unsupported, f.Expired = r.Entries, r.Invalid, r.Unsupported, r.Expired
	f.Format, f.Packed, f.Notes, f.Skipped = r.Format, r.Packed, r.Notes, r.Skipped
}

// sink returns a function that takes a worker's entries.
func (c *collector) sink() func(listfile.Entry) error {
	n := len(c.workers)
	w := new(worker)
	c.workers = append(c.workers, w)
	if n == len(c.adders) {
		c.adders = append(c.adders, c.builder.Adder())
	}
	adder, file := c.adders[n], c.file
	return func(e listfile.Entry) error {
		if e.Exception {
			w.exceptions++
			if c.options.noExceptions {
				return fmt.Errorf("line %d: %w", e.Line, ErrException)
			}
		} else if e.Until != 0 {
			w.ending[c.horizon(e.Until)]++
		}
		if why := c.omissions.Of(&e); why.Omitted() {
			if why.Protected() != "" {
				w.protected++
			} else {
				w.disallowed++
			}
			w.problems = keepProblem(w.problems, why.problem(c.path, &e))
			return nil
		}
		err := adder.Add(segment.Entry{
			For: e.For, Key: e.Key, Kind: uint8(e.Kind), Exception: e.Exception, Defer: e.Defer,
			Until: e.Until, File: file, Line: e.Line, Reason: e.Reason, Note: e.Note,
		})
		if errors.Is(err, segment.ErrEntry) {
			w.refused++
			w.problems = keepProblem(w.problems, blocklist.FileProblem{File: c.path, Problem: listfile.Problem{
				Line: e.Line, Text: e.Key[:min(len(e.Key), 40)] + "…", What: "longer than any address",
			}})
			return nil
		}
		if err != nil {
			return buildError{err}
		}
		return nil
	}
}

// horizon returns which of [horizons] is the first before which an entry expires, or their number.
func (c *collector) horizon(until int64) int {
	for i, h := range horizons {
		if until <= c.now.Add(h).Unix() {
			return i
		}
	}
	return len(horizons)
}

// problemSort is what a blocklist.FileProblem is about.
type problemSort uint8

const (
	invalidLine problemSort = iota
	unsupportedLine
	protectedLine
	disallowedLine
)

// sortOf returns what a problem is about.
func sortOf(p *blocklist.FileProblem) problemSort {
	switch {
	case p.Protected:
		return protectedLine
	case p.Disallowed:
		return disallowedLine
	case p.Unsupported:
		return unsupportedLine
	}
	return invalidLine
}

// first returns the first problem of a sort. There must be one.
func first(problems []blocklist.FileProblem, sort problemSort) *blocklist.FileProblem {
	return &problems[slices.IndexFunc(problems, func(p blocklist.FileProblem) bool { return sortOf(&p) == sort })]
}

// keepProblem keeps the first [blocklist.MaxProblems] of each sort.
func keepProblem(problems []blocklist.FileProblem, p blocklist.FileProblem) []blocklist.FileProblem {
	n := 0
	for i := range problems {
		if sortOf(&problems[i]) == sortOf(&p) {
			n++
		}
	}
	if n == blocklist.MaxProblems {
		return problems
	}
	p.Text = strings.Clone(p.Text) // it may be part of much text
	return append(problems, p)
}

// firstOfEach keeps the first [blocklist.MaxProblems] of each sort.
func firstOfEach(problems []blocklist.FileProblem) []blocklist.FileProblem {
	var first []blocklist.FileProblem
	for _, p := range problems {
		first = keepProblem(first, p)
	}
	return first
}
