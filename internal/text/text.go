// Package text holds small functions on text that several packages need.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsASCII reports whether s has no byte above 127.
func IsASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Printable returns s with a "?" in place of each character that is not
// printable, such as those that control a terminal, and of each invalid byte.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Number returns n with commas between groups of three digits: "1,234,567".
func Number[T int | int64 | uint64](n T) string {
	s := strconv.FormatUint(uint64(max(n, 0)), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count returns n with its noun: "1 entry", "1,200 entries".
func Count[T int | int64 | uint64](n T, item, many string) string {
	if n == 1 {
		return "1 " + item
	}
	return Number(n) + " " + many
}

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// EscapeGlob returns a pattern of path/filepath.Match that matches only s.
func EscapeGlob(s string) string { return globEscaper.Replace(s) }
