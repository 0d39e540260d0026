package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// This file is about files that are no TOML: what the parser says in its own
// words, in those of an admin. The parser knows where it stopped; what was meant
// is guessed from the line, by the mistakes that people make.

// syntaxError explains why a file cannot be parsed. Nothing else can be said about
// such a file.
func syntaxError(file string, src []byte, err error) error {
	fault := &Error{File: file, What: strings.TrimPrefix(err.Error(), "toml: "), Hint: "see https://toml.io for the syntax"}
	if e := encodingFault(src); e != nil {
		e.File = file
		return e
	}
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return fault
	}
	fault.Line, fault.Column = decode.Position()
	fault.Key = strings.Join(decode.Key(), ".")
	if duplicateFault(src, fault) {
		return fault
	}
	s := newStatement(src, fault.Line)
	if s.explain(fault) {
		fault.Key = s.key()
	}
	return fault
}

// encodingFault finds what no text file in UTF-8 holds; nil if there is none.
func encodingFault(src []byte) *Error {
	const save = "save the file as UTF-8"
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return &Error{Line: 1, Column: 1, What: "the file is in UTF-16", Hint: save}
	}
	for i, line := range bytes.SplitAfter(src, []byte("\n")) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		for at, rest := 0, line; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			e := &Error{Line: i + 1, Column: at + 1}
			switch {
			case r == utf8.RuneError && n == 1:
				e.What, e.Hint = fmt.Sprintf("the byte %#x is not UTF-8", rest[0]), save+", which it is not (ISO 8859-1, perhaps)"
				return e
			case r == '\r':
				e.What, e.Hint = "a carriage return without a line feed does not end a line", "save the file with the line ends of Unix"
				return e
			case r < ' ' && r != '\t', r == 0x7f:
				e.What, e.Hint = fmt.Sprintf("the control character %U is not allowed", r), "delete it"
				return e
			}
			at, rest = at+n, rest[n:]
		}
	}
	return nil
}

// duplicateFault explains a key or table that is there twice, and says where the
// first one is. It reports whether that is the fault.
func duplicateFault(src []byte, fault *Error) bool {
	if !strings.Contains(fault.What, "already") {
		return false
	}
	ix := newIndexer(src)
	ix.run()
	path, ok := ix.again[unstable.Position{Line: fault.Line, Column: fault.Column}]
	if !ok {
		return false
	}
	first := ix.at[path]
	name := display(path)
	fault.Key = name
	array := name == "list" || name == "listener"
	line := strings.TrimSpace(lineOf(src, fault.Line))
	switch {
	case !strings.HasPrefix(line, "["):
		fault.What = fmt.Sprintf("is set twice, the first time at line %d", first.Line)
		fault.Hint = "remove one of the two lines"
	case array:
		fault.What = fmt.Sprintf("already begins at line %d, and one of the two has single brackets", first.Line)
		fault.Hint = fmt.Sprintf("write [[%s]] with two brackets, once for each", name)
	case strings.HasPrefix(line, "[["):
		fault.What = fmt.Sprintf("already begins at line %d, and there can be only one", first.Line)
		fault.Hint = fmt.Sprintf("move the keys below the first [%s], and remove this line", name)
	case !strings.HasPrefix(strings.TrimSpace(lineOf(src, first.Line)), "["):
		fault.What = fmt.Sprintf("[%s] cannot follow %s at line %d", name, strings.TrimSpace(beforeEqual(lineOf(src, first.Line))), first.Line)
		fault.Hint = fmt.Sprintf("move that key below [%s], without %q", name, name+".")
	default:
		fault.What = fmt.Sprintf("[%s] is there twice, the first time at line %d", name, first.Line)
		fault.Hint = fmt.Sprintf("move the keys below the first [%s], and remove this line", name)
	}
	return true
}

// lineOf returns a line of a file, counted from 1.
func lineOf(src []byte, n int) string {
	for line := range bytes.Lines(src) {
		if n--; n == 0 {
			return strings.TrimRight(string(line), "\r\n")
		}
	}
	return ""
}

func beforeEqual(line string) string {
	before, _, _ := strings.Cut(line, "=")
	return before
}

// maxStatement is how many lines back a statement is looked for that the parser
// has not understood.
const maxStatement = 200

// statement is what the parser has stopped in: a key with its value, or the
// header of a table.
type statement struct {
	first, last int    // lines; last is where the parser stopped
	text        string // the first line, without space around it
	indent      int    // bytes before it
	at          string // the last line
	table       string // the path of the table that it belongs to
}

// newStatement finds the statement that the parser was in when it stopped at a
// line: it begins behind the most lines that can be parsed by themselves.
func newStatement(src []byte, line int) *statement {
	s := &statement{first: line, last: line, at: lineOf(src, line)}
	offsets := []int{0}
	for l := range bytes.Lines(src) {
		offsets = append(offsets, offsets[len(offsets)-1]+len(l))
	}
	for n := min(line-1, len(offsets)-1); n >= max(0, line-maxStatement); n-- {
		if table, ok := tableAt(src[:offsets[n]]); ok {
			s.first, s.table = n+1, table
			break
		}
	}
	// Comments and empty lines before it belong to no statement.
	for ; s.first < s.last; s.first++ {
		if t := strings.TrimSpace(lineOf(src, s.first)); t != "" && t[0] != '#' {
			break
		}
	}
	text := lineOf(src, s.first)
	s.text = strings.TrimSpace(text)
	s.indent = strings.Index(text, s.text)
	return s
}

// tableAt returns the table that the next key after some lines belongs to. It
// reports whether these lines can be parsed.
func tableAt(src []byte) (table string, ok bool) {
	ix := newIndexer(src)
	ix.run()
	return ordinal.ReplaceAllString(ix.prefix, ""), ix.p.Error() == nil
}

// key returns the name of the key that the statement sets, with its table; empty if
// it is no key that the configuration has.
func (s *statement) key() string {
	name, _, _ := s.split()
	path := strings.Trim(s.table+"."+name, ".")
	if _, ok := typeOf(path); !ok {
		return ""
	}
	return path
}

// split takes a key and its value apart. Comments at the end are left out.
func (s *statement) split() (key, value string, ok bool) {
	key, value, ok = strings.Cut(s.text, "=")
	if at := strings.Index(value, " #"); at >= 0 && !strings.ContainsAny(value[at:], `"'`) {
		value = value[:at]
	}
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// explain finds out what is wrong with the statement, and says so.
func (s *statement) explain(fault *Error) bool {
	for _, try := range []func(*Error) bool{s.foreignRune, s.foreignComment, s.header, s.noEqual, s.badKey, s.openArray, s.value} {
		if try(fault) {
			return true
		}
	}
	return false
}

// say sets what is wrong and what to do, at the beginning of the statement.
func (s *statement) say(fault *Error, what, hint string) bool {
	fault.Line, fault.Column = s.first, s.indent+1
	fault.What, fault.Hint = what, hint
	return true
}

// quotesOfTypography are what editors for letters make of quotation marks.
const quotesOfTypography = "“”„‟‘’‚‛«»‹›＂＇`´″′"

// straight makes straight quotes of them.
var straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "‹", `"`, "›", `"`, "＂", `"`, "″", `"`,
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "＇", "'", "`", "'", "´", "'", "′", "'")

// foreignRune finds characters that look as if they belonged there.
func (s *statement) foreignRune(fault *Error) bool {
	code := withoutStrings(s.at)
	if at := strings.IndexAny(code, quotesOfTypography); at >= 0 {
		r, _ := utf8.DecodeRuneInString(code[at:])
		fault.Column = at + 1
		fault.What = fmt.Sprintf("%c is not a quotation mark of TOML", r)
		fault.Hint = `use straight ones: ` + strings.TrimSpace(straight.Replace(s.at))
		return true
	}
	for at, r := range code {
		if name, ok := invisible[r]; ok {
			fault.Column = at + 1
			fault.What = fmt.Sprintf("the line holds %s (%U), which cannot be seen", name, r)
			fault.Hint = "delete it, or type a space in its place"
			return true
		}
	}
	return false
}

// invisible characters come with text from web pages.
var invisible = map[rune]string{
	0xa0: "a no-break space", 0x2007: "a figure space", 0x202f: "a narrow no-break space", 0x3000: "an ideographic space",
	0x200b: "a zero-width space", 0x200c: "a zero-width non-joiner", 0x200d: "a zero-width joiner", 0x2060: "a word joiner",
	0xfeff: "a byte order mark", 0xad: "a soft hyphen", 0x2028: "a line separator",
}

// withoutStrings blanks out what stands in quotes, and a comment.
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

// foreignComment finds the comments of other languages.
func (s *statement) foreignComment(fault *Error) bool {
	for _, mark := range []string{";", "//", "/*", "--", "<!--", "!", "%"} {
		if strings.HasPrefix(s.text, mark) {
			return s.say(fault, fmt.Sprintf("%q does not begin a comment", mark), `write "#" in its place`)
		}
	}
	if strings.HasPrefix(s.text, "{") {
		return s.say(fault, "the file looks like JSON", "write TOML, as config.toml is that ships with spamgate: a line [table], and below it key = value")
	}
	return false
}

// nearestKey returns the key of the table that was meant by a name; the name itself
// if there is none like it.
func (s *statement) nearestKey(name string) string {
	t := reflect.TypeFor[Config]()
	if s.table != "" {
		var ok bool
		if t, ok = typeOf(s.table); !ok {
			return name
		}
	}
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return name
	}
	if key, ok := nearest(name, keysOf(t)); ok {
		return key
	}
	return name
}

var tableName = regexp.MustCompile(`^\[+\s*([A-Za-z0-9_-]*)`)

// header explains a line that begins a table.
func (s *statement) header(fault *Error) bool {
	if !strings.HasPrefix(s.text, "[") {
		return false
	}
	name := tableName.FindStringSubmatch(s.text)[1]
	if name == "" {
		return s.say(fault, "the brackets name no table", "write its name, such as [listen] or [[list]]")
	}
	want := "[" + name + "]"
	if name == "list" || name == "listener" {
		want = "[" + want + "]"
	}
	inside := strings.TrimLeft(s.text, "[")
	end := strings.Index(inside, "]")
	if end < 0 {
		return s.say(fault, "a bracket is open", "close it: "+want)
	}
	opening, closing := len(s.text)-len(inside), len(inside[end:])-len(strings.TrimLeft(inside[end:], "]"))
	rest := strings.TrimSpace(strings.TrimLeft(inside[end:], "]"))
	switch {
	case opening != closing:
		return s.say(fault, fmt.Sprintf("has %d opening and %d closing brackets", opening, closing), "write "+want)
	case rest != "" && rest[0] != '#':
		return s.say(fault, fmt.Sprintf("%q follows on the same line as %s", rest, strings.TrimSpace(s.text[:len(s.text)-len(rest)])), "write it on a line of its own, or remove it")
	}
	return s.say(fault, fmt.Sprintf("%s is not the name of a table", s.text), "write "+want)
}

var (
	wordThenValue = regexp.MustCompile(`^([A-Za-z0-9_.-]+)\s*(?:=>|:=|:)?\s*(.*)$`)
	bareDotted    = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// noEqual explains a key without "=".
func (s *statement) noEqual(fault *Error) bool {
	if strings.Contains(withoutStrings(s.text), "=") && !strings.Contains(beforeEqual(s.text), ":") {
		return false
	}
	m := wordThenValue.FindStringSubmatch(s.text)
	if m == nil || s.first != s.last {
		return false
	}
	if rest := strings.TrimSpace(m[2]); strings.HasPrefix(rest, "{") {
		return s.say(fault, "a table does not begin with a brace", "write ["+m[1]+"] on a line of its own, the keys below it, and no braces")
	}
	name, value := s.nearestKey(m[1]), strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(m[2]), "="))
	path := strings.Trim(s.table+"."+name, ".")
	if value == "" {
		return s.say(fault, fmt.Sprintf("%q has no value", name), fmt.Sprintf("write %s = %s", name, sample(path)))
	}
	return s.say(fault, fmt.Sprintf(`there is no "=" between %q and its value`, name), "write "+name+" = "+asValue(path, value))
}

// badKey explains what is to the left of "=".
func (s *statement) badKey(fault *Error) bool {
	key, value, _ := s.split()
	switch {
	case key == "":
		return s.say(fault, `there is no key before "="`, "write key = value")
	case bareDotted.MatchString(key):
		return false
	case strings.HasPrefix(key, `"`) || strings.HasPrefix(key, "'"):
		return s.say(fault, "a quotation mark is open in the key", "write the key without quotes")
	}
	joined := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return ' '
	}, key)), "_")
	joined = s.nearestKey(joined)
	path := strings.Trim(s.table+"."+joined, ".")
	return s.say(fault, fmt.Sprintf("%q cannot be a key, which is letters, digits, \"_\" and \"-\"", key),
		"write "+cmp.Or(joined, "key")+" = "+asValue(path, value))
}
