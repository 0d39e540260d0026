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
)

// This file is about files that are not TOML. It says in an admin's words what the
// parser says in its own. The parser knows where it stopped; what was meant is
// guessed from the line, by the mistakes that people make.

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
// line: it begins after the longest run of lines that can be parsed alone.
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
