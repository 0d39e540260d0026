package listfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
)

const (
	bom        = "\xEF\xBB\xBF"
	readBuffer = 64 << 10
)

// Reader reads a list file. A file that is packed with gzip or zstd is unpacked.
// Memory stays bounded whatever the length of a line.
type Reader struct {
	// Problem, if not nil, is called for every line that is invalid or
	// unsupported, in the order of the file.
	Problem func(Problem)

	in      io.Reader
	options Options
	format  Format
	result  Result
}

// NewReader returns a Reader of the list in r.
func NewReader(r io.Reader, o Options) *Reader { return &Reader{in: r, options: o} }

// All yields every valid entry, in the order of the file. It can be used once. The exceptions
// that one of an ad blocker's list means for rules below its name come last.
//
// An entry that repeats an earlier one is yielded like any other. An index keeps
// the first of them, so that it shows the line and reason that a reader of the
// file finds first.
//
// An error ends the sequence. It means that the file cannot be read or is not what
// it should be: ErrBinary, ErrUTF16, ErrNotList, ErrPacked, ErrTooBig or ErrSyntax. The entries
// before it are then not a whole list and must not be used.
func (r *Reader) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		out := newOutput(r.options, func(e Entry) error {
			if !yield(e, nil) {
				return errStopped
			}
			return nil
		}, r.Problem)
		err := r.readAll(out)
		r.result = out.finish()
		if err != nil && err != errStopped {
			yield(Entry{}, err)
		}
	}
}

// Result returns the counts of what All has read. It is valid once All has ended.
func (r *Reader) Result() Result { return r.result }

// errStopped ends a file whose reader wants no more entries.
var errStopped = errors.New("stopped")

// Format returns the format of the file, recognised or not. It is valid once All has
// yielded an entry.
func (r *Reader) Format() Format { return r.format }

// readAll reads a file in one goroutine.
func (r *Reader) readAll(out *output) error {
	in, err := start(r.in, out)
	if err != nil {
		return err
	}
	defer in.close()
	r.format = out.result.Format
	return readLines(in.Reader, out)
}

// start unpacks a file and determines its format.
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
	sample, _ := in.Peek(readBuffer) // reading returns an error again
	if err := checkList(sample, len(sample) == readBuffer); err != nil {
		in.close()
		return nil, err
	}
	if out.options.PerRecipient && out.options.Format != "" && out.options.Format != Plain {
		in.close()
		return nil, fmt.Errorf("%w: only a plain list has lines for recipients, not %s", ErrSyntax, kinds[out.options.Format])
	}
	if err := out.choose(sample); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// readLines reads the lines of a file one after the other.
func readLines(r *bufio.Reader, out *output) error {
	g, err := grammarOf(out.result.Format)
	if err != nil {
		return err
	}
	if g.whole != nil {
		return g.whole(out, r)
	}
	c := cutter{in: r, line: 1}
	for c.next() {
		if err := c.part.readLines(g, out, true); err != nil {
			return err
		}
	}
	if g.end != nil {
		g.end(out)
	}
	if g.last != nil {
		g.last(out)
	}
	return out.err
}
