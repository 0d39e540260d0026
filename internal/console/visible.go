package console

import (
	"fmt"
	"strings"
	"unicode"
)

// visible returns a text that strangers wrote so that nothing in it is hidden or changes how the
// rest looks: control characters and those that change the direction of writing become escapes.
func visible(text string) string { return escapeUnusual(text, "") }

// visibleLines is visible, and keeps the ends of lines.
func visibleLines(text string) string { return escapeUnusual(text, "\n") }

func escapeUnusual(text, keep string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	unusual := func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) }
	if !strings.ContainsFunc(text, unusual) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !unusual(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
