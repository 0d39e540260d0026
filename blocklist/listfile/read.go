package listfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
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

// readAll reads a file in one goroutine.
func (r *Reader) readAll(out *output) error {
	in, err := start(r.in, out)
	if err != nil {
		return err
	}
	defer in.close()
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

// grammar reads the lines of a format.
type grammar struct {
	// comments are the bytes that start a comment line, unless directive follows.
	comments  string
	directive byte

	// line reads a line that is neither empty nor a comment.
	line func(o *output, line int, text string)

	// end, if not nil, passes on what line has held back. It is called after the
	// last line, and before a line is refused that line does not see.
	end func(o *output)

	// last, if not nil, is called after the last line.
	last func(o *output)

	// each means that no line depends on another, so that a file may be read in
	// parts.
	each bool

	// whole, if not nil, reads a file that does not consist of lines.
	whole func(o *output, in *bufio.Reader) error
}

// isComment reports whether a line with this content is a comment.
func (g *grammar) isComment(content string) bool {
	return strings.IndexByte(g.comments, content[0]) >= 0 &&
		(g.directive == 0 || len(content) < 2 || content[1] != g.directive)
}

// grammarOf returns a new grammar for a format.
func grammarOf(f Format) (*grammar, error) {
	switch f {
	case "", Plain:
		return &grammar{comments: "#", line: plainLine, each: true}, nil
	case Hosts:
		return &grammar{comments: "#", line: hostsLine, each: true}, nil
	case SpamAssassin:
		return &grammar{comments: "#", line: spamAssassinLine, each: true}, nil
	case Rspamd:
		return &grammar{comments: "#", line: rspamdLine, each: true}, nil
	case Adblock:
		var a adblock
		return &grammar{comments: "!", line: a.line, last: a.last}, nil
	case Dnsmasq:
		return &grammar{comments: "#", line: dnsmasqLine, each: true}, nil
	case URLs:
		return &grammar{comments: "#", line: urlsLine, each: true}, nil
	case PostfixAccess:
		p := table{read: postfixLine}
		return &grammar{comments: "#", line: p.line, end: p.end}, nil
	case Exim:
		p := table{read: eximLine}
		return &grammar{comments: "#", line: p.line, end: p.end}, nil
	case Sendmail:
		p := table{read: sendmailLine}
		return &grammar{comments: "#", line: func(o *output, line int, text string) {
			p.line(o, line, trim(text))
			p.end(o)
		}}, nil
	case RBLDNSD:
		var r rbldnsd
		return &grammar{comments: "#;", directive: '$', line: r.line}, nil
	case RPZ:
		var z zone
		return &grammar{comments: ";", line: z.line, end: z.end}, nil
	case CSV:
		return &grammar{whole: readCSV}, nil
	case JSON:
		return &grammar{whole: readJSON}, nil
	}
	return nil, UnknownFormat(f)
}
