// Package rcs writes and applies differences of texts in the RCS format of diff -n, which
// programs that fetch lists know: https://www.gnu.org/software/diffutils/manual/html_node/RCS.html
//
// A script has commands in the order of the old text, whose lines count from 1:
//
//	d5 2    leaves out 2 lines, from line 5 on
//	a7 1    adds the 1 line that follows here after line 7
package rcs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

// What can be wrong. Use errors.Is.
var (
	// ErrLarge means that a script, or what it makes, would be larger than allowed.
	ErrLarge = errors.New("rcs: it is too large")

	// ErrLines means that a text has no script: a line is too long, or the last one has no end.
	ErrLines = errors.New("rcs: not a text of short, ended lines")

	// ErrDamaged means that a script does not fit the text, or is not one.
	ErrDamaged = errors.New("rcs: the script does not fit")
)

const (
	maxLine = 64 << 10

	// Diff looks for the next common line among that many lines of both texts, and among more
	// if there is none. Beyond the last window it takes all of them for changed: this bounds
	// time and memory. What was moved further counts as removed and added.
	minWindow, maxWindow = 16, 64 << 10
	maxAhead             = 8 << 20 // bytes of one text
)

// Diff returns the script, of at most most bytes, that makes the new text of the old one.
func Diff(old, new io.Reader, most int64) ([]byte, error) {
	var script bytes.Buffer
	a, b := newSide(old), newSide(new)
	for {
		skip(a, b)
		if err := errors.Join(a.fill(1), b.fill(1)); err != nil {
			return nil, err
		}
		switch {
		case len(a.lines) == 0 && len(b.lines) == 0:
			return script.Bytes(), nil
		case len(a.lines) > 0 && len(b.lines) > 0 && bytes.Equal(a.lines[0], b.lines[0]):
			a.drop(1)
			b.drop(1)
			continue
		}
		removed, added, err := meet(a, b)
		if err != nil {
			return nil, err
		}
		if removed > 0 {
			fmt.Fprintf(&script, "d%d %d\n", a.pos+1, removed)
		}
		a.drop(removed)
		if added > 0 {
			fmt.Fprintf(&script, "a%d %d\n", a.pos, added)
		}
		for _, line := range b.lines[:added] {
			script.Write(line)
		}
		b.drop(added)
		if int64(script.Len()) > most {
			return nil, ErrLarge
		}
	}
}

// skip drops common lines, as many at once as are in the buffers: lists are long, and changes few.
func skip(a, b *side) {
	for len(a.lines) == 0 && len(b.lines) == 0 {
		x, _ := a.in.Peek(maxLine) // fill returns the error
		y, _ := b.in.Peek(maxLine)
		n := min(len(x), len(y))
		if !bytes.Equal(x[:n], y[:n]) {
			n = sort.Search(n, func(i int) bool { return !bytes.Equal(x[:i+1], y[:i+1]) })
		}
		if n = bytes.LastIndexByte(x[:n], '\n') + 1; n == 0 {
			return
		}
		lines := bytes.Count(x[:n], newline)
		for _, s := range []*side{a, b} {
			s.pos += lines
			_, _ = s.in.Discard(n)
		}
	}
}

var newline = []byte("\n")

// meet returns how many lines of both texts precede the next common one.
func meet(a, b *side) (removed, added int, err error) {
	for window := minWindow; ; window *= 16 {
		if err := errors.Join(a.fill(window), b.fill(window)); err != nil {
			return 0, 0, err
		}
		where := make(map[string]int, len(b.lines))
		for i, line := range b.lines {
			if _, ok := where[string(line)]; !ok {
				where[string(line)] = i
			}
		}
		removed, added = len(a.lines), len(b.lines)
		found := false
		for i := 0; i < len(a.lines) && (!found || i < removed+added); i++ {
			if j, ok := where[string(a.lines[i])]; ok && (!found || i+j < removed+added) {
				removed, added, found = i, j, true
			}
		}
		if found || window >= maxWindow || a.ended && b.ended {
			return removed, added, nil
		}
	}
}

// side is one of the two texts.
type side struct {
	in    *bufio.Reader
	lines [][]byte // that were read and not dropped; a single one is valid until the next is read
	owned bool     // the lines are copies
	pos   int      // lines that were dropped
	bytes int      // of the lines
	ended bool
}

func newSide(r io.Reader) *side { return &side{in: bufio.NewReaderSize(r, maxLine)} }

// fill reads until there are n lines, or all, or as many as may be.
func (s *side) fill(n int) error {
	if n > 1 && len(s.lines) == 1 && !s.owned {
		s.lines[0] = bytes.Clone(s.lines[0])
	}
	s.owned = s.owned && len(s.lines) > 0 || n > 1
	for len(s.lines) < n && !s.ended && s.bytes < maxAhead {
		line, err := s.in.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			s.ended = true
			return nil
		case err == io.EOF || err == bufio.ErrBufferFull:
			return ErrLines
		case err != nil:
			return err
		}
		if s.owned {
			line = bytes.Clone(line)
		}
		s.lines, s.bytes = append(s.lines, line), s.bytes+len(line)
	}
	return nil
}

// drop forgets the first n lines.
func (s *side) drop(n int) {
	s.pos += n
	for _, line := range s.lines[:n] {
		s.bytes -= len(line)
	}
	if s.lines = s.lines[n:]; len(s.lines) == 0 {
		s.lines = nil
	}
}

// Apply writes what a script makes of the old text, at most most bytes.
func Apply(w io.Writer, old, script io.Reader, most int64) error {
	from, commands := bufio.NewReaderSize(old, maxLine), bufio.NewReader(script)
	to := bufio.NewWriterSize(&bounded{w, most}, maxLine)
	for pos := 0; ; {
		command, err := commands.ReadString('\n')
		if err == io.EOF && command == "" {
			_, err := io.Copy(to, from)
			return errors.Join(err, to.Flush())
		}
		if err != nil && err != io.EOF {
			return err
		}
		add, line, n, ok := parse(strings.TrimSuffix(command, "\n"))
		if !ok || line < pos {
			return fmt.Errorf("%w: %.80q", ErrDamaged, command)
		}
		if err := copyLines(to, from, line-pos); err != nil {
			return err
		}
		pos = line
		if add {
			err = copyLines(to, commands, n)
		} else {
			err, pos = copyLines(io.Discard, from, n), pos+n
		}
		if err != nil {
			return err
		}
	}
}

// parse parses a command. It returns after which line of the old text it acts.
func parse(command string) (add bool, line, n int, ok bool) {
	if command == "" {
		return false, 0, 0, false
	}
	first, count, found := strings.Cut(command[1:], " ")
	line, err := strconv.Atoi(first)
	n, err2 := strconv.Atoi(count)
	if add = command[0] == 'a'; !add {
		line--
	}
	return add, line, n, found && (add || command[0] == 'd') && errors.Join(err, err2) == nil && line >= 0 && n > 0
}

// copyLines copies n lines, of which the last may have no end.
func copyLines(w io.Writer, r *bufio.Reader, n int) error {
	for ended := true; n > 0; {
		_, err := r.Peek(1)
		switch {
		case err == io.EOF && n == 1 && !ended:
			return nil
		case err == io.EOF:
			return fmt.Errorf("%w: lines are missing", ErrDamaged)
		case err != nil:
			return err
		}
		chunk, _ := r.Peek(r.Buffered())
		if lines := bytes.Count(chunk, newline); lines < n {
			n -= lines
		} else {
			end := 0
			for ; n > 0; n-- {
				end += bytes.IndexByte(chunk[end:], '\n') + 1
			}
			chunk = chunk[:end]
		}
		ended = chunk[len(chunk)-1] == '\n'
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		_, _ = r.Discard(len(chunk))
	}
	return nil
}

// bounded is a writer that fails after n bytes.
type bounded struct {
	w io.Writer
	n int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.n -= int64(len(p)); b.n < 0 {
		return 0, ErrLarge
	}
	return b.w.Write(p)
}
