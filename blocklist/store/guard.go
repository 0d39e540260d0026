package store

import (
	"errors"
	"fmt"
	"strconv"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
)

// ErrHeld is each error of a list that can be read and looks wrong. Use errors.Is.
var ErrHeld = errors.New("held")

// heldError is an ErrHeld.
type heldError string

func (e heldError) Error() string        { return string(e) }
func (e heldError) Is(target error) bool { return target == ErrHeld }

// Why the version of a list that is on disk is held. Use errors.Is. Each is an
// ErrHeld.
var (
	ErrEmptied      error = heldError("empty, and it had entries before (a file that should be empty holds a comment)")
	ErrInvalidLines error = heldError("too many invalid lines")
	ErrLongLine     error = heldError("a line that is too long")
	ErrFew          error = heldError("too few entries")
	ErrShrunk       error = heldError("shrunk too much")
	ErrGrown        error = heldError("grown too much")
	ErrExceptions   error = heldError("too many new exceptions")
	ErrExpiring     error = heldError("too many entries expire")
	ErrProtected    error = heldError("an entry that covers a protected name")
	ErrTooBig       error = heldError("too big")
)

// ErrException is wrapped where the filter alone decides and a list has an
// exception.
var ErrException = errors.New("an exception, which confirm = false rules out")

// From guardEntries entries on, a list with more than one invalid line in
// invalidShare is held: it is a list of something else.
const (
	guardEntries = 1000
	invalidShare = 100
)

// guards say how large a change may be.
type guards struct {
	minEntries           int
	maxShrink, maxGrowth float64 // negative growth: any
}

func (l *List) guards() guards {
	g := guards{l.MinEntries, l.MaxShrink, l.MaxGrowth}
	if g.maxShrink == 0 {
		g.maxShrink = DefaultMaxShrink
	}
	if g.maxGrowth == 0 {
		g.maxGrowth = DefaultMaxGrowth
	}
	return g
}

// maxBytes returns the size of the largest file that is read.
func (l *List) maxBytes() int64 {
	if l.MaxBytes == 0 {
		return DefaultMaxBytes
	}
	return l.MaxBytes
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// tooManyInvalid applies the guard to a file or a list. The larger of the two versions
// counts, so that it notices an error page in the place of a long list, however short the
// page is.
func tooManyInvalid(entries, invalid, before int, problems []blocklist.FileProblem) error {
	lines := entries + invalid
	if max(lines, before) < guardEntries || invalid*invalidShare <= lines {
		return nil
	}
	return invalidLines(invalid, lines, problems)
}

// invalidLines returns the error of a file with so many invalid lines.
func invalidLines(invalid, lines int, problems []blocklist.FileProblem) error {
	p := first(problems, invalidLine)
	return fmt.Errorf("%w: %d of %d; the first: %s:%d: %q: %s; correct the lines, or set format to what the file is written in",
		ErrInvalidLines, invalid, lines, p.File, p.Line, p.Text, p.What)
}

// tooLong applies the guard to a list's first line of more than [listfile.MaxLine] bytes, if
// there is one. No list of senders has such lines, but a file that lost its line ends
// does.
func tooLong(lines, before int, first *blocklist.FileProblem) error {
	if first == nil || max(lines, before) < guardEntries {
		return nil
	}
	return fmt.Errorf("%w: line %d has more than %d bytes", ErrLongLine, first.Line, listfile.MaxLine)
}

// tooBig returns an error if a file is larger than may be.
func tooBig(size, most int64) error {
	if size <= most {
		return nil
	}
	return fmt.Errorf("%w: %d bytes, and max_bytes is %d; raise it if the file is right", ErrTooBig, size, most)
}

// acceptable reports whether accepting a list's content lets it in. For the others the error
// says what to do. To let in what is not a list, such as an error page or a list of another
// format, would let everybody through without a word.
func acceptable(err error) bool {
	for _, other := range []error{ErrFew, ErrShrunk, ErrGrown, ErrExceptions, ErrExpiring, ErrLongLine} {
		if errors.Is(err, other) {
			return true
		}
	}
	return false
}

// Remedy is something that may be done about a list that fails.
type Remedy int

const (
	AcceptHeld   Remedy = iota // accept what is held, see [AcceptContent]
	RetryKilled                // try once more to read it, see [RetryBuild]
	FetchFirst                 // fetch the list's file, which was never fetched
	FetchAgain                 // fetch the list's file again, which has gone
	UnpinFirst                 // unpin the list, see [UnpinList]
	RestoreFiles               // restore the files, which have gone, from history: see [Versions]
)

// advise adds to a list's error how the program's user gets the remedy, if
// [Config.Advise] says so.
func (s *source) advise(err error, r Remedy) error {
	if s.advice == nil {
		return err
	}
	separator := ";"
	if r == FetchFirst {
		separator = ":"
	}
	return fmt.Errorf("%w%s %s", err, separator, s.advice(s.list.Name, r))
}
