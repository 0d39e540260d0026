package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// syntaxError explains why a file is not valid TOML. The parser knows where it
// stopped; what the author meant is guessed from the line, by common mistakes.
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

// maxStatement is how many lines back to search for the beginning of the statement
// in which the parser stopped.
const maxStatement = 200

// statement is the key with its value, or the header of a table, in which the
// parser stopped.
type statement struct {
	first, last int    // lines; the parser stopped at the last
	text        string // the first line, without surrounding space
	indent      int    // bytes before text in its line
	place       string // the last line
	table       string // the path of the enclosing table
}

// newStatement returns the statement in which the parser stopped at a line. It
// begins after the longest run of lines that can be parsed alone.
func newStatement(src []byte, line int) *statement {
	s := &statement{first: line, last: line, place: lineOf(src, line)}
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
	// Comments and empty lines are not part of the statement.
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

// tableAt returns the table of a key that follows the lines src, and reports whether
// they can be parsed.
func tableAt(src []byte) (table string, ok bool) {
	ix := index(src)
	return ordinal.ReplaceAllString(ix.prefix, ""), ix.p.Error() == nil
}

// key returns the path of the key that the statement sets; empty if the
// configuration has no such key.
func (s *statement) key() string {
	name, _, _ := s.split()
	path := s.path(name)
	if _, ok := typeOf(path); !ok {
		return ""
	}
	return path
}

// path returns the path of a key in the statement's table.
func (s *statement) path(key string) string { return strings.Trim(s.table+"."+key, ".") }

// split returns the key and the value, without a comment at the end.
func (s *statement) split() (key, value string, ok bool) {
	key, value, ok = strings.Cut(s.text, "=")
	if pos := strings.Index(value, " #"); pos >= 0 && !strings.ContainsAny(value[pos:], `"'`) {
		value = value[:pos]
	}
	return strings.TrimSpace(key), strings.TrimSpace(value), ok
}

// explain finds the mistake in the statement, and describes it in fault.
func (s *statement) explain(fault *Error) bool {
	for _, try := range []func(*Error) bool{s.foreignRune, s.foreignComment, s.header, s.noEqual, s.badKey, s.openArray, s.value} {
		if try(fault) {
			return true
		}
	}
	return false
}

// say describes a mistake at the beginning of the statement.
func (s *statement) say(fault *Error, what, hint string) bool {
	fault.Line, fault.Column = s.first, s.indent+1
	fault.What, fault.Hint = what, hint
	return true
}

// foreignComment finds comments and braces of other languages.
func (s *statement) foreignComment(fault *Error) bool {
	for _, mark := range []string{";", "//", "/*", "--", "<!--", "!", "%"} {
		if strings.HasPrefix(s.text, mark) {
			return s.say(fault, fmt.Sprintf("%q does not begin a comment", mark), `write "#" instead`)
		}
	}
	if strings.HasPrefix(s.text, "{") {
		return s.say(fault, "the file looks like JSON", "write TOML, as in the shipped config.toml: a line [table], and below it key = value")
	}
	return false
}

// nearestKey returns the key of the table that resembles name most, or name itself
// if none does.
func (s *statement) nearestKey(name string) string {
	t := reflect.TypeFor[Config]()
	if s.table != "" {
		t, _ = typeOf(s.table)
	}
	if t != nil && t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t != nil && t.Kind() == reflect.Struct {
		if key, ok := Nearest(name, keysOf(t, s.table)); ok {
			return key
		}
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
		return s.say(fault, "there is no name in the brackets", "write the name of a table, such as [listen] or [[list]]")
	}
	want := "[" + name + "]"
	if name == "list" || name == "listener" {
		want = "[" + want + "]"
	}
	inside := strings.TrimLeft(s.text, "[")
	end := strings.Index(inside, "]")
	if end < 0 {
		return s.say(fault, "a bracket is not closed", "close it: "+want)
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
	if value == "" {
		_, sample := valueHelp(s.path(name))
		return s.say(fault, fmt.Sprintf("%q has no value", name), fmt.Sprintf("write %s = %s", name, sample))
	}
	return s.say(fault, fmt.Sprintf(`there is no "=" between %q and its value`, name), "write "+name+" = "+asValue(s.path(name), value))
}

// badKey explains a mistake before "=".
func (s *statement) badKey(fault *Error) bool {
	key, value, _ := s.split()
	switch {
	case key == "":
		return s.say(fault, `there is no key before "="`, "write key = value")
	case bareDotted.MatchString(key):
		return false
	case strings.HasPrefix(key, `"`) || strings.HasPrefix(key, "'"):
		return s.say(fault, "a quotation mark in the key is not closed", "write the key without quotes")
	}
	joined := strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return ' '
	}, key)), "_")
	joined = s.nearestKey(joined)
	return s.say(fault, fmt.Sprintf("%q cannot be a key, which consists of letters, digits, \"_\" and \"-\"", key),
		"write "+cmp.Or(joined, "key")+" = "+asValue(s.path(joined), value))
}

// duplicateFault explains a key or table that the file has twice, and says where
// the first one is. It reports whether that is the fault.
func duplicateFault(src []byte, fault *Error) bool {
	if !strings.Contains(fault.What, "already") {
		return false
	}
	ix := index(src)
	path, ok := ix.again[unstable.Position{Line: fault.Line, Column: fault.Column}]
	if !ok {
		return false
	}
	first := ix.pos[path]
	name := display(path)
	fault.Key = name
	array := name == "list" || name == "listener"
	line := strings.TrimSpace(lineOf(src, fault.Line))
	switch {
	case !strings.HasPrefix(line, "["):
		fault.What = fmt.Sprintf("is set twice, the first time at line %d", first.Line)
		fault.Hint = "remove one of the two lines"
	case array:
		fault.What = fmt.Sprintf("already begins at line %d, but one of the two has single brackets", first.Line)
		fault.Hint = fmt.Sprintf("write [[%s]] with two brackets, once for each", name)
	case strings.HasPrefix(line, "[["):
		fault.What = fmt.Sprintf("already begins at line %d; there can be only one", first.Line)
		fault.Hint = fmt.Sprintf("move the keys below the first [%s], and remove this line", name)
	case !strings.HasPrefix(strings.TrimSpace(lineOf(src, first.Line)), "["):
		fault.What = fmt.Sprintf("[%s] cannot follow %s at line %d", name, strings.TrimSpace(beforeEqual(lineOf(src, first.Line))), first.Line)
		fault.Hint = fmt.Sprintf("move that key below [%s], without %q", name, name+".")
	default:
		fault.What = fmt.Sprintf("[%s] appears twice, the first time at line %d", name, first.Line)
		fault.Hint = fmt.Sprintf("move the keys below the first [%s], and remove this line", name)
	}
	return true
}
