// Package term formats text for terminals: lines of a width, and tables.
package term

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Wrap returns text in lines of at most width characters, broken between words.
// A longer word has a line of its own.
func Wrap(text string, width int) []string { return wrap(text, width, width) }

// WrapHard is Wrap, but also breaks words longer than width, after a comma if
// there is one.
func WrapHard(text string, width int) []string { return Wrap(breakWords(text, width), width) }

// Paragraph writes text in lines of at most width characters. The first line
// begins with label, the others with indent.
func Paragraph(w io.Writer, label, indent, text string, width int) {
	begin := label
	for _, line := range wrap(text, width-utf8.RuneCountInString(label), width-utf8.RuneCountInString(indent)) {
		fmt.Fprintln(w, strings.TrimRight(begin+line, " "))
		begin = indent
	}
}

// wrap returns text in lines, the first of at most first characters and the
// others of at most rest.
func wrap(text string, first, rest int) []string {
	var lines []string
	line, width := "", first
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line, width = word, rest
		}
	}
	return append(lines, line)
}

// breakWords puts spaces into words longer than width.
func breakWords(text string, width int) string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		for runes := []rune(word); len(runes) > width; runes = []rune(word) {
			piece := string(runes[:width])
			piece = piece[:strings.LastIndexByte(piece, ',')+1]
			if piece == "" {
				piece = string(runes[:width])
			}
			words = append(words, piece)
			word = word[len(piece):]
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}
