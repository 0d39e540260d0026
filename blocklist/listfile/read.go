package listfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	bom = "\xEF\xBB\xBF"

	// readBuffer is larger than MaxLine, so that a line that does not fit
	// is known to be too long.
	readBuffer = 64 << 10
)

// Read reads a list and calls entry for every valid entry and problem for
// every line that is invalid or unsupported, in the order of the file; problem
// may be nil. Memory stays bounded whatever the length of a line. A file that is
// packed with gzip or zstd is unpacked.
//
// An entry that repeats an earlier one is passed on like any other: to know
// all keys is the index's job, not the reader's. Whoever builds one keeps the
// first, so that the line and reason shown are those that a reader of the file
// finds first.
//
// Read stops at an error from entry and returns it as it is. Otherwise it fails
// only where the file cannot be read or is not what it should be: ErrBinary,
// ErrUTF16, ErrPacked, ErrTooBig, ErrSyntax. Then the entries seen so far are
// not a list, and are to be dropped.
func Read(r io.Reader, o Options, entry func(Entry) error, problem func(Problem)) (Result, error) {
	out := newOutput(o, entry, problem)
	in, err := start(r, out)
	if err != nil {
		return out.result, err
	}
	defer in.close()
	err = readLines(in.Reader, out)
	return out.finish(), err
}

// start unpacks a file and finds out how it is written.
func start(r io.Reader, out *output) (*packed, error) {
	in, err := unpack(r, out.options)
	if err != nil {
		return nil, err
	}
	out.result.Packed = in.name
	if start, _ := in.Peek(2); string(start) == "\xFF\xFE" || string(start) == "\xFE\xFF" {
		in.close()
		return nil, ErrUTF16
	}
	sample, _ := in.Peek(readBuffer) // an error comes again when it is read
	out.choose(sample)
	return in, nil
}

// readLines reads a file line by line.
func readLines(r *bufio.Reader, out *output) error {
	g, err := grammarOf(out.result.Format)
	if err != nil {
		return err
	}
	if g.whole != nil {
		return g.whole(out, r)
	}
	l := lines{in: r}
	for {
		text, long, err := l.next()
		if err == io.EOF {
			break
		}
		out.result.Lines = l.number
		if err != nil {
			return err
		}
		if err := out.take(g, l.number, string(text), long); err != nil {
			return err
		}
	}
	if g.end != nil {
		return g.end(out)
	}
	return nil
}

// lines cuts a text into lines.
type lines struct {
	in     *bufio.Reader
	number int // of the line that was returned
}

// next returns the head of the next line, valid until the next call. At the end
// of the file the error is io.EOF.
func (l *lines) next() (text []byte, long bool, err error) {
	line, err := l.in.ReadSlice('\n')
	if len(line) > 0 || err != io.EOF {
		l.number++
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, false, fmt.Errorf("line %d: %w", l.number, ErrBinary)
	}
	whole := true
	if err == bufio.ErrBufferFull {
		line, whole = bytes.Clone(line[:MaxLine+len(bom)]), false
		err = skipLine(l.in)
		if errors.Is(err, ErrBinary) {
			return nil, false, fmt.Errorf("line %d: %w", l.number, err)
		}
	}
	if err == io.EOF && len(line) > 0 {
		err = nil // the last line has no end
	}
	if err == io.EOF {
		return nil, false, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading line %d: %w", l.number, err)
	}
	text, long = head(line)
	return text, long || !whole, nil
}

// skipLine discards the rest of a line.
func skipLine(in *bufio.Reader) error {
	for {
		rest, err := in.ReadSlice('\n')
		if bytes.IndexByte(rest, 0) >= 0 {
			return ErrBinary
		}
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}
