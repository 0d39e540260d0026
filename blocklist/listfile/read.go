package listfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

const (
	bom = "\xEF\xBB\xBF"

	// readBuffer is larger than MaxLine, so that a line that does not fit
	// is known to be too long.
	readBuffer = 64 << 10
)

// Read reads a list and calls entry for every valid entry and problem for
// every line that is invalid, in the order of the file; problem may be nil.
// Memory stays bounded whatever the length of a line.
//
// An entry that repeats an earlier one is passed on like any other: to know
// all keys is the index's job, not the reader's. Whoever builds one keeps the
// first, so that the line and reason shown are those that a reader of the file
// finds first.
//
// Read stops at an error from entry and returns it as it is. Otherwise it fails
// only where the file cannot be read or is no text: ErrBinary, ErrUTF16. Then
// the entries seen so far are not a list, and are to be dropped.
func Read(r io.Reader, o Options, entry func(Entry) error, problem func(Problem)) (Result, error) {
	if problem == nil {
		problem = func(Problem) {}
	}
	l := loader{in: bufio.NewReaderSize(r, readBuffer), options: o, entry: entry, problem: problem}
	if start, _ := l.in.Peek(2); string(start) == "\xFF\xFE" || string(start) == "\xFE\xFF" {
		return l.result, ErrUTF16
	}
	for {
		line, long, err := l.next()
		if err == io.EOF {
			return l.result, nil
		}
		if err != nil {
			return l.result, err
		}
		if err := l.take(line, long); err != nil {
			return l.result, err
		}
	}
}

// loader is one call of Read.
type loader struct {
	in      *bufio.Reader
	options Options
	entry   func(Entry) error
	problem func(Problem)
	result  Result
}

// next returns the next line without its end and without a byte order mark.
// (One may stand at the start of any line where files were put together.) Of a
// line longer than the buffer it returns the start, and long. The line is valid
// until the next call. At the end of the file the error is io.EOF.
func (l *loader) next() (line []byte, long bool, err error) {
	line, err = l.in.ReadSlice('\n')
	if len(line) > 0 {
		l.result.Lines++
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, false, fmt.Errorf("line %d: %w", l.result.Lines, ErrBinary)
	}
	if err == bufio.ErrBufferFull {
		line, long = bytes.Clone(line[:MaxLine]), true
		err = l.skipLine()
	}
	if err == io.EOF && len(line) > 0 {
		err = nil // the last line has no end
	}
	if err != nil {
		if err != io.EOF && !errors.Is(err, ErrBinary) {
			err = fmt.Errorf("reading line %d: %w", l.result.Lines, err)
		}
		return nil, false, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	return bytes.TrimPrefix(line, []byte(bom)), long, nil
}

// skipLine discards the rest of a line.
func (l *loader) skipLine() error {
	for {
		rest, err := l.in.ReadSlice('\n')
		if bytes.IndexByte(rest, 0) >= 0 {
			return fmt.Errorf("line %d: %w", l.result.Lines, ErrBinary)
		}
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}

// take deals with one line.
func (l *loader) take(line []byte, long bool) error {
	text := bytes.TrimLeft(line, " \t")
	if bytes.IndexByte(line, '\r') >= 0 {
		// Checked in comments too: in a file whose lines all end in a bare CR
		// the first comment would swallow every entry.
		l.refuse(Problem{
			Text: string(line[:min(len(line), MaxLine)]),
			What: "a carriage return inside the line",
			Hint: "lines end in LF or CRLF; save the file with such line ends",
		})
		return nil
	}
	if len(text) == 0 && !long || len(text) > 0 && text[0] == '#' {
		return nil
	}
	if long || len(line) > MaxLine {
		l.refuse(Problem{
			Text: string(text[:min(len(text), MaxLine)]),
			What: fmt.Sprintf("a line of more than %d bytes", MaxLine),
			Hint: "write one entry a line",
		})
		return nil
	}
	s, reason, note := splitComment(string(text))
	e, err := parseEntry(s, l.options)
	if err != nil {
		l.refuse(explain(s, l.options, err))
		return nil
	}
	e.Line, e.Reason, e.Note = l.result.Lines, printable(reason), printable(note)
	l.result.Entries++
	return l.entry(e)
}

// refuse reports an invalid line.
func (l *loader) refuse(p Problem) {
	p.Line = l.result.Lines
	p.Text = clip(p.Text)
	l.result.Invalid++
	l.problem(p)
}

// splitComment splits a line into its entry and the two parts of a trailing
// comment. The # of a comment has white space in front of it and is not inside
// a quoted local part.
func splitComment(s string) (entry, reason, note string) {
	at := commentStart(s)
	if at < 0 {
		return s, "", ""
	}
	entry, comment := s[:at], s[at:]
	reason, note, _ = strings.Cut(comment, "##")
	reason = strings.TrimPrefix(reason, "#")
	note = strings.TrimLeft(note, "#")
	return entry, strings.TrimSpace(reason), strings.TrimSpace(note)
}

// commentStart returns the index of the # that starts a trailing comment, or
// -1.
func commentStart(s string) int {
	if strings.IndexByte(s, '#') < 0 {
		return -1
	}
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == '#' && !quoted && i > 0 && (s[i-1] == ' ' || s[i-1] == '\t'):
			return i
		}
	}
	return -1
}

// printable returns s as valid UTF-8 without control characters. Damage in a
// comment does not make its entry invalid.
func printable(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}
	return strings.Map(clean, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// maxText bounds the text that a Problem quotes.
const maxText = 120

// clip makes s printable and cuts it to maxText bytes.
func clip(s string) string {
	s = printable(strings.TrimSpace(s))
	if len(s) <= maxText {
		return s
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(s[:maxText-len(ellipsis)], "") + ellipsis
}
