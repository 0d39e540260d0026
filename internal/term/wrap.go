package term

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Columns is the width of wrapped text.
const Columns = 80

// Wrap returns text in lines of at most width characters, broken between words. It
// breaks longer words, after a comma if there is one.
func Wrap(text string, width int) []string {
	var words []string
	for word := range strings.FieldsSeq(text) {
		for runes := []rune(word); len(runes) > width; runes = []rune(word) {
			piece := string(runes[:width])
			if comma := strings.LastIndexByte(piece, ','); comma >= 0 {
				piece = piece[:comma+1]
			}
			words = append(words, piece)
			word = word[len(piece):]
		}
		words = append(words, word)
	}
	return wrap(words, width, width)
}

// wrap returns words in lines, the first of at most first characters and the others
// of at most rest. A longer word has a line of its own.
func wrap(words []string, first, rest int) []string {
	var lines []string
	line, width := "", first
	for _, word := range words {
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

// PrintWrapped prints a text after a label, which ends with a space, in lines of at
// most [Columns]. Further lines are indented like the first, or less if the label is
// long.
func PrintWrapped(w io.Writer, label, text string) {
	indent := len(label)
	if indent > Columns/4 {
		indent = 4
	}
	printWords(w, label, indent, strings.Fields(text))
}

// PrintParts prints parts after a label, with commas between, in lines of at most
// [Columns].
func PrintParts(w io.Writer, label string, parts []string) {
	words := slices.Clone(parts)
	for i := range max(0, len(words)-1) {
		words[i] += ","
	}
	printWords(w, fmt.Sprintf("  %-10s ", label), 15, words)
}

// printWords prints words after a label, with further lines indented.
func printWords(w io.Writer, label string, indent int, words []string) {
	for _, line := range wrap(words, Columns-len(label), Columns-indent) {
		fmt.Fprintln(w, strings.TrimRight(label+line, " "))
		label = strings.Repeat(" ", indent)
	}
}
