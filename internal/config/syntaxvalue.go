package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// openArray explains an array or a text of several lines that does not end where
// its author meant it to.
func (s *statement) openArray(fault *Error) bool {
	name, value, _ := s.split()
	what := strings.TrimSpace(withoutStrings(s.place))
	switch {
	case strings.HasPrefix(value, `"""`) || strings.HasPrefix(value, "'''"):
		return s.say(fault, "the text in three quotation marks is not closed", fmt.Sprintf("write %s = \"…\" on one line", name))
	case !strings.HasPrefix(value, "["), bracketed.MatchString(value):
		return false
	case s.first == s.last && hasBareElement(value):
		return s.say(fault, "a value in the array is not in quotes", "write "+name+" = "+asArray(value))
	case strings.Contains(fault.What, "expected ',' or ']'") && s.continues(what):
		fault.What, fault.Hint = "a comma is missing between two values of the array", `write ["a", "b"]`
		return true
	case s.first != s.last:
		return s.say(fault, `the array has no "]" at its end`, `write "]" after its last value`)
	case !strings.Contains(withoutStrings(s.text), "]"):
		return s.say(fault, `the array has no "]" at its end`, "write "+name+" = "+asArray(value))
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(withoutStrings(value), "["), "]")
	if rest = strings.TrimSpace(rest); rest != "" && !strings.HasPrefix(rest, "]") {
		return s.say(fault, fmt.Sprintf("%q follows the array", rest), "remove it, or write it on a line of its own")
	}
	return false
}

// hasBareElement reports whether an array on one line contains unquoted text.
func hasBareElement(value string) bool {
	inside, _, closed := strings.Cut(strings.TrimPrefix(withoutStrings(value), "["), "]")
	if !closed {
		return false
	}
	for element := range strings.SplitSeq(inside, ",") {
		if e := strings.TrimSpace(element); e != "" && !strings.ContainsAny(e[:1], `"'[{`) {
			return true
		}
	}
	return false
}

// continues reports whether a line still has values of the array.
func (s *statement) continues(line string) bool {
	return s.first == s.last && strings.Contains(line, "]") ||
		s.first != s.last && !strings.Contains(line, "=") && !strings.HasPrefix(line, "[")
}

// asArray returns values in brackets, each in quotes.
func asArray(value string) string {
	value, _, _ = strings.Cut(strings.Trim(value, "[ "), "]")
	parts := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
	for i, p := range parts {
		parts[i] = strconv.Quote(strings.Trim(p, `"'`))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// value explains a mistake after "=".
func (s *statement) value(fault *Error) bool {
	name, value, _ := s.split()
	path := s.path(name)
	wanted, sample := valueHelp(path)
	write := func(value string) string { return "write " + name + " = " + value }
	switch {
	case bracketed.MatchString(value):
		return s.say(fault, value+" is not in quotes", write(quote(value)))
	case value == "":
		return s.say(fault, "has no value", write(sample)+", or remove the line")
	case strings.HasPrefix(value, "="), strings.HasPrefix(value, ">"):
		return s.say(fault, fmt.Sprintf("%q stands between key and value", "="+value[:1]), write(asValue(path, strings.TrimSpace(value[1:]))))
	case value[0] == '"' || value[0] == '\'':
		return s.quoted(fault, name, path, value)
	case strings.HasSuffix(value, ";") || strings.HasSuffix(value, ","):
		return s.say(fault, fmt.Sprintf("%q follows the value", value[len(value)-1:]), write(asValue(path, strings.TrimRight(value, ";, "))))
	case slices.Contains([]string{"null", "nil", "undefined", "~"}, strings.ToLower(value)):
		return s.say(fault, fmt.Sprintf("TOML has no %s", value), "remove the line for the default, or "+write(sample))
	}
	what := fmt.Sprintf("%s is not in quotes", value)
	switch k := wantedKind(path); {
	case k == reflect.String || k == reflect.Slice || k == reflect.Invalid:
	case zeroFirst.MatchString(value):
		what = fmt.Sprintf("%s begins with a zero", value)
	default:
		what = fmt.Sprintf("%s is not %s", value, wanted)
	}
	if isLimit(path) && asNumber(value) == "" {
		return s.say(fault, what, "write "+wholeNumber(path))
	}
	return s.say(fault, what, write(asValue(path, value)))
}

// quoted explains a value that begins with a quotation mark.
func (s *statement) quoted(fault *Error, name, path, value string) bool {
	write := func(value string) string { return "write " + name + " = " + value }
	end := closing(value)
	if end < 0 {
		text := strings.TrimRight(value[1:], `,;"'`)
		return s.say(fault, "a quotation mark is not closed", "close it: "+name+" = "+quote(text))
	}
	rest := strings.TrimSpace(value[end+1:])
	switch {
	case strings.Contains(fault.What, "escape"), strings.Contains(fault.What, "hexadecimal"):
		text := value[1:end]
		hint := fmt.Sprintf(`write '%s' in single quotes, or each backslash twice`, text)
		if strings.HasSuffix(name, "path") || strings.HasSuffix(name, "dir") || strings.HasPrefix(name, "tls_") {
			hint += `; separate directories with "/"`
		}
		return s.say(fault, `a backslash in double quotes begins an escape sequence, but this is not one`, hint)
	case rest == "":
		return false
	case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, ";") && rest != ";":
		return s.say(fault, fmt.Sprintf("%q does not begin a comment", rest[:1+strings.Count(rest[:2], "/")/2]), `write "#" instead`)
	case strings.HasPrefix(rest, ","), wantedKind(path) == reflect.Slice:
		return s.say(fault, "several values are not in brackets", write("["+strings.TrimRight(value, ",; ")+"]"))
	case rest == ";":
		return s.say(fault, `";" follows the value`, write(value[:end+1]))
	case value[0] == '\'':
		return s.say(fault, fmt.Sprintf("%q follows the single quote that ends the value", rest), write(quote(strings.Trim(value, "'"))))
	}
	return s.say(fault, fmt.Sprintf("%q follows the quotation mark that ends the value", rest),
		`remove it, write it on a line of its own, or write \" for a quotation mark inside the text`)
}

// closing returns where a quoted text ends, or -1.
func closing(value string) int {
	for i := 1; i < len(value); i++ {
		switch {
		case value[i] == '\\' && value[0] == '"':
			i++
		case value[i] == value[0]:
			return i
		}
	}
	return -1
}

// quote puts a text in double quotes, or in single ones if it has a backslash.
func quote(text string) string {
	if strings.ContainsAny(text, `\`) && !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	return `"` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`) + `"`
}

// typeOf returns the type of a key's value. The path has no ordinals.
func typeOf(path string) (reflect.Type, bool) {
	t, table := reflect.TypeFor[Config](), ""
	for name := range strings.SplitSeq(path, ".") {
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t != reflect.TypeFor[[]netip.Prefix]() {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || t == reflect.TypeFor[netip.Prefix]() {
			return nil, false
		}
		fields := fieldsOf(t, table)
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == name })
		if i < 0 {
			return nil, false
		}
		t, table = fields[i].Type, name
	}
	return t, true
}

// wantedKind returns the kind of a key's value in the file: a string, a bool, a
// number or a slice; Invalid if the key is unknown. Durations and sizes are strings.
func wantedKind(path string) reflect.Kind {
	t, ok := typeOf(path)
	switch {
	case !ok:
		return reflect.Invalid
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[Size](), t == reflect.TypeFor[Addresses]():
		return reflect.String
	}
	return t.Kind()
}

// valueHelp describes the value that a key takes, and gives an example of it as in the
// file.
func valueHelp(path string) (wanted, sample string) {
	t, _ := typeOf(path)
	switch kind := wantedKind(path); {
	case t == reflect.TypeFor[time.Duration]():
		return `a duration in quotes, such as "30s"`, `"30s"`
	case t == reflect.TypeFor[Size]():
		return `a size in quotes, such as "1GiB"`, `"1GiB"`
	case kind == reflect.Bool:
		return "true or false", "true or false"
	case kind == reflect.Int64 || kind == reflect.Int:
		return "a whole number", "NUMBER"
	case kind == reflect.Float64:
		return "a number", "1e-6"
	case kind == reflect.Slice:
		return `an array, such as ["a", "b"]`, `["a", "b"]`
	}
	return "a value in quotes", `"VALUE"`
}

var (
	bracketed      = regexp.MustCompile(`^\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\](:[0-9]+)?$`) // an IPv6 address
	zeroFirst      = regexp.MustCompile(`^0[0-9]+$`)
	numberWithUnit = regexp.MustCompile(`^([0-9][0-9,_.' ]*?)\s*([A-Za-z%]*)$`)

	sizes = map[string]int64{
		"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
		"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30,
	}
)

// asValue returns an unquoted value in the form that the key needs.
func asValue(path, value string) string {
	value = strings.Trim(value, `"' `)
	lower := strings.ToLower(value)
	switch wantedKind(path) {
	case reflect.Bool:
		if slices.Contains([]string{"no", "off", "false", "0", "n", "disabled"}, lower) {
			return "false"
		}
		if slices.Contains([]string{"yes", "on", "true", "1", "y", "enabled"}, lower) {
			return "true"
		}
		return "true or false"
	case reflect.Int64:
		return cmp.Or(asNumber(value), "NUMBER")
	case reflect.Float64:
		return cmp.Or(strings.TrimRight(strings.ReplaceAll(value, ",", "."), "%"), "1e-6")
	case reflect.Slice:
		return asArray(value)
	}
	if lower == "true" || lower == "false" {
		return lower
	}
	if strings.Contains(value, ",") {
		return asArray(value)
	}
	return quote(value)
}

// asNumber returns a number with a unit, commas or leading zeros as a plain one, or
// "" if value is not a number.
func asNumber(value string) string {
	m := numberWithUnit.FindStringSubmatch(value)
	if m == nil {
		return ""
	}
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", "_", "", "'", "", " ", "").Replace(m[1]), 10, 48)
	size, ok := sizes[strings.ToLower(m[2])]
	if err != nil || !ok {
		return ""
	}
	return strconv.FormatInt(n*size, 10)
}
