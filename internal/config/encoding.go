package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// encodingFault returns an error about the first byte that is not valid in a text
// file in UTF-8, or nil.
func encodingFault(src []byte) *Error {
	const save = "save the file as UTF-8"
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return &Error{Line: 1, Column: 1, What: "the file is in UTF-16", Hint: save}
	}
	for i, line := range bytes.SplitAfter(src, []byte("\n")) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		for pos, rest := 0, line; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			e := &Error{Line: i + 1, Column: pos + 1}
			switch {
			case r == utf8.RuneError && n == 1:
				e.What, e.Hint = fmt.Sprintf("the byte %#x is not UTF-8", rest[0]), save+"; it may be in ISO 8859-1"
				return e
			case r == '\r':
				e.What, e.Hint = "a carriage return without a line feed does not end a line", "save the file with Unix line ends"
				return e
			case r < ' ' && r != '\t', r == 0x7f:
				e.What, e.Hint = fmt.Sprintf("the control character %U is not allowed", r), "delete it"
				return e
			}
			pos, rest = pos+n, rest[n:]
		}
	}
	return nil
}

// straight replaces the quotation marks of word processors by straight ones.
var straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‹", `"`, "›", `"`, "＂", `"`, "″", `"`,
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "＇", "'", "`", "'", "´", "'", "′", "'")

// foreignRune finds characters that look like valid ones.
func (s *statement) foreignRune(fault *Error) bool {
	for pos, r := range withoutStrings(s.place) {
		what, hint := "", "delete it, or type a space instead"
		if name, ok := invisible[r]; ok {
			what = fmt.Sprintf("the line contains %s (%U), which is invisible", name, r)
		} else if straight.Replace(string(r)) != string(r) {
			what, hint = fmt.Sprintf("%c is not a quotation mark in TOML", r), `use straight ones: `+strings.TrimSpace(straight.Replace(s.place))
		}
		if what != "" {
			fault.Column, fault.What, fault.Hint = pos+1, what, hint
			return true
		}
	}
	return false
}

// invisible names characters that come with text from web pages.
var invisible = map[rune]string{
	0xa0: "a no-break space", 0x2007: "a figure space", 0x202f: "a narrow no-break space", 0x3000: "an ideographic space",
	0x200b: "a zero-width space", 0x200c: "a zero-width non-joiner", 0x200d: "a zero-width joiner", 0x2060: "a word joiner",
	0xfeff: "a byte order mark", 0xad: "a soft hyphen", 0x2028: "a line separator",
}

// withoutStrings replaces quoted text by spaces, and cuts a comment off.
func withoutStrings(line string) string {
	b := []byte(line)
	var quote byte
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quote == 0 && c == '#':
			return string(b[:i])
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == '"' && c == '\\' && i+1 < len(b):
			b[i], b[i+1] = ' ', ' '
			i++
		case c == quote:
			quote = 0
		case quote != 0:
			b[i] = ' '
		}
	}
	return string(b)
}
