package listedit

import (
	"bytes"
	"io"
	"strings"
)

// candidates is a Reader that drops those lines of a plain list that cannot have a wanted
// entry, so that an edit of a long list parses a few lines of it. It compares the
// first characters of each line with those of the keys (and the last ones of its entry with
// domains), and keeps a line when in doubt.
// Its output is a list, too; line returns the number that a line had.
type candidates struct {
	in   io.Reader
	keys [256][]keyStart // by first byte
	ends []string        // see endOf

	buf    []byte // what was read last
	rest   []byte // of buf; it begins with a whole line, unless inLong is set
	ended  error  // the error that ended reading
	inLong bool   // rest begins inside a line that is longer than buf

	out    []byte // lines that were not returned yet
	lines  []int  // the number of each line that was kept
	passed int    // number of lines before rest
}

// keyStart is the part of a key that all its spellings begin with, apart from upper case,
// characters beyond ASCII, and decoration.
type keyStart struct {
	text  string
	whole bool // the key ends there
}

// candidateBuffer is how much is read at a time. It is longer than any line that has
// an entry.
const candidateBuffer = 256 << 10

// mostCandidates is the greatest number of keys for which comparing them is faster than
// parsing every line.
const mostCandidates = 1 << 10

// newCandidates returns a candidates; nil if every line has to be parsed.
func newCandidates(in io.Reader, wanted *Wanted) *candidates {
	if len(wanted.Keys)+len(wanted.Below) > mostCandidates {
		return nil
	}
	c := &candidates{in: in, buf: make([]byte, candidateBuffer)}
	for _, key := range wanted.Keys {
		start := startOf(key)
		if start.text == "" {
			return nil
		}
		c.keys[start.text[0]] = append(c.keys[start.text[0]], start)
	}
	for _, name := range wanted.Below {
		end := endOf(name)
		if end == "" {
			return nil
		}
		c.ends = append(c.ends, end)
	}
	return c
}

// decorates are the characters that an entry in a list may begin with although its key
// does not, or the reverse.
var decorates = byteSet(" \t!<\"@*.\\")

// ends are the characters that may follow an entry in a list.
var ends = byteSet(" \t\r>.")

// varies are the characters that have other spellings, or belong to something that has.
var varies = func() [256]bool {
	t := byteSet("\"\\[ ")
	for c := 0x80; c < len(t); c++ {
		t[c] = true
	}
	return t
}()

func byteSet(s string) (t [256]bool) {
	for i := range len(s) {
		t[s[i]] = true
	}
	return t
}

// lower maps the letters of ASCII to lower case.
var lower = func() (t [256]byte) {
	for c := range t {
		t[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}()

// startOf returns the start of a key; of one with two sides that of the recipient's, which
// comes first in a line.
func startOf(key string) keyStart {
	key, _, _ = strings.Cut(key, "\t")
	for key != "" && decorates[key[0]] {
		key = key[1:]
	}
	for i := range len(key) {
		if varies[key[i]] || strings.HasPrefix(key[i:], "xn--") {
			return keyStart{key[:i], false}
		}
	}
	return keyStart{key, true}
}

// endOf returns the part of a domain that all spellings of names at or below it end with,
// apart from upper case and characters beyond ASCII.
func endOf(name string) string {
	if i := strings.LastIndex(name, "xn--"); i >= 0 {
		_, rest, _ := strings.Cut(name[i:], ".")
		return rest
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 || varies[r] }) {
		return "" // an address literal
	}
	return name
}

// line returns the number of line n of the output.
func (c *candidates) line(n int) int { return c.lines[n-1] }

// has reports whether a line may have a wanted entry.
func (c *candidates) has(line []byte) bool {
	if len(c.ends) > 0 && c.hasEnd(line) {
		return true
	}
	for len(line) > 0 && decorates[line[0]] {
		line = line[1:]
	}
	if len(line) == 0 {
		return false
	}
	if varies[line[0]] {
		return true
	}
	for _, key := range c.keys[lower[line[0]]] {
		if key.begins(line) {
			return true
		}
	}
	return false
}

// hasEnd reports whether the entry in a line may have one of the ends.
func (c *candidates) hasEnd(line []byte) bool {
	if i := bytes.IndexByte(line, '#'); i >= 0 {
		if i > 0 && line[i-1] != ' ' && line[i-1] != '\t' {
			return true // it need not begin a comment
		}
		line = line[:i]
	}
	for len(line) > 0 && ends[line[len(line)-1]] {
		line = line[:len(line)-1]
	}
	for _, end := range c.ends {
		if endsWith(line, end) {
			return true
		}
	}
	return false
}

// endsWith reports whether an entry may have an end.
func endsWith(line []byte, end string) bool {
	for i := 1; i <= len(end); i++ {
		switch {
		case i > len(line):
			return false
		case varies[line[len(line)-i]]:
			return true
		case lower[line[len(line)-i]] != end[len(end)-i]:
			return false
		}
	}
	return true
}

// begins reports whether a line without decoration may have the key.
func (k *keyStart) begins(line []byte) bool {
	for i := range len(k.text) {
		switch {
		case i == len(line):
			return false
		case varies[line[i]]:
			return true
		case lower[line[i]] != k.text[i]:
			return false
		}
	}
	if !k.whole || len(line) == len(k.text) {
		return true
	}
	next := line[len(k.text)]
	return ends[next] || varies[next]
}

// Read reads lines that may have a wanted entry. It keeps the first line of the file,
// by which a file that is not a list is recognised, and lines with NUL bytes, which
// no list has.
func (c *candidates) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		if c.ended != nil {
			return 0, c.ended
		}
		c.fill()
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// fill reads more of the file, and sets out to the lines of it that are kept.
func (c *candidates) fill() {
	before := copy(c.buf, c.rest)
	n, err := io.ReadFull(c.in, c.buf[before:])
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	c.ended = err
	c.rest, c.out = c.buf[:before+n], nil
	binary := bytes.IndexByte(c.rest, 0) >= 0
	for len(c.rest) > 0 {
		end := bytes.IndexByte(c.rest, '\n')
		if end < 0 && err == nil && len(c.rest) < len(c.buf) {
			return // the line's end is still to be read
		}
		line := c.rest
		if end >= 0 {
			line = c.rest[:end]
		}
		if !c.inLong {
			c.passed++
		}
		if c.passed == 1 || !c.inLong && c.has(line) || binary && bytes.IndexByte(line, 0) >= 0 {
			c.lines = append(c.lines, c.passed)
			c.out = append(append(c.out, line...), '\n')
		}
		c.inLong = end < 0
		c.rest = c.rest[min(len(line)+1, len(c.rest)):]
	}
}
