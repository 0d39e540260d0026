package sender

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrNoDomain is wrapped by Parse's error where an address has no @ outside
// quotes, or nothing after it: "postmaster", "user@".
var ErrNoDomain = errors.New("no domain")

var (
	errNoLocal   = errors.New(`no local part: nothing before the "@"`)
	errBrackets  = errors.New(`unbalanced "<" and ">"`)
	errAround    = errors.New(`text around "<...>": write the address alone`)
	errOpenQuote = errors.New("a quote that is never closed")
)

// Parse reads an address as SMTP or a header field carries it and normalises
// it. Space around it and one pair of angle brackets are dropped; "" and "<>"
// are the null sender. The domain starts after the last @ outside quotes.
//
// The error says what is wrong without repeating the address. An address that
// is in normal form already is not copied: the result shares its memory.
func Parse(s string) (Address, error) {
	if pos, ok := scanNormal(s); ok {
		return Address{s, pos}, nil
	}
	s, err := unwrap(s)
	if err != nil || s == "" {
		return Address{}, err
	}
	if pos, ok := scanNormal(s); ok {
		return Address{s, pos}, nil
	}
	return parse(s)
}

// scanNormal reports whether s is an all-ASCII address in normal form that
// needs no quotes, and where its @ is. It is the fast path: one pass, a table
// look-up a byte.
func scanNormal(s string) (pos int, ok bool) {
	for pos < len(s) && class[s[pos]]&normalLocal != 0 {
		pos++
	}
	if pos == 0 || pos == len(s) || s[pos] != '@' {
		return 0, false
	}
	return pos, isNormalDomain(s[pos+1:])
}

// unwrap drops space around s and one pair of angle brackets.
func unwrap(s string) (string, error) {
	s = strings.Trim(s, " \t")
	open, closed := strings.HasPrefix(s, "<"), strings.HasSuffix(s, ">")
	switch {
	case open && closed:
		return strings.Trim(s[1:len(s)-1], " \t"), nil
	case closed && strings.Contains(s, "<"), open && strings.Contains(s, ">"):
		return "", errAround
	case open != closed:
		return "", errBrackets
	}
	return s, nil
}

// parse parses what Parse's fast path does not: s is not empty, and its brackets are off.
func parse(s string) (Address, error) {
	if err := checkText(s); err != nil {
		return Address{}, err
	}
	pos, err := lastAt(s)
	switch {
	case err != nil:
		return Address{}, err
	case pos < 0:
		return Address{}, fmt.Errorf(`%w: there is no "@" in it`, ErrNoDomain)
	case pos == 0:
		return Address{}, errNoLocal
	case pos == len(s)-1:
		return Address{}, fmt.Errorf(`%w: nothing after the "@"`, ErrNoDomain)
	}
	local, err := normalizeLocal(s[:pos])
	if err != nil {
		return Address{}, err
	}
	domain, err := normalizeDomain(s[pos+1:])
	if err != nil {
		return Address{}, err
	}
	return Address{local + "@" + domain, len(local)}, nil
}

// lastAt returns the index of the last @ outside quotes, -1 where there is
// none.
func lastAt(s string) (int, error) {
	pos, quoted := -1, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++ // a quoted pair: the next byte is content, whatever it is
		case c == '@' && !quoted:
			pos = i
		}
	}
	if quoted {
		return -1, errOpenQuote
	}
	return pos, nil
}

// checkText refuses what no part of an address may hold, quoted or not:
// control characters (C0, DEL and C1) and bytes that are not UTF-8.
func checkText(s string) error {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return fmt.Errorf("byte 0x%02X is not UTF-8", s[i])
			}
		}
		if unicode.IsControl(r) {
			return fmt.Errorf("control character %s", name(r))
		}
	}
	return nil
}

// name writes a character for an error message: visible ASCII in quotes, as a
// comma or a colon would read as the sentence's own, the rest by number, since a
// message may go where it would be acted upon.
func name(r rune) string {
	switch {
	case r == ' ':
		return "a space"
	case r == '"':
		return `'"'`
	case r > ' ' && r < 0x7F:
		return `"` + string(r) + `"`
	}
	return fmt.Sprintf("%U", r)
}
