package reference

import "strings"

// Paragraph is a part of a text: filled, or with its lines as they are.
type Paragraph struct {
	Text      string
	Formatted bool
}

// Paragraphs splits lines at empty ones.
func Paragraphs(lines []string) (all []Paragraph) {
	for text := range strings.SplitSeq(strings.Join(lines, "\n"), "\n\n") {
		text = strings.Trim(text, "\n")
		if text == "" {
			continue
		}
		formatted := strings.HasPrefix(text, " ")
		if formatted {
			text = outdent(text)
			if last := len(all) - 1; last >= 0 && all[last].Formatted {
				all[last].Text += "\n\n" + text
				continue
			}
		}
		all = append(all, Paragraph{text, formatted})
	}
	return all
}

// outdent removes the indentation that all lines have.
func outdent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "    "), "\n    ", "\n")
}
