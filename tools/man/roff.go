package main

import "strings"

// tidy corrects a page that go-md2man wrote: options become paragraphs with a tag, lines are neither
// hyphenated nor stretched, and each "-" can be copied as such.
func tidy(page string) string {
	var out []string
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		text, isTag := strings.CutPrefix(line, "\t")
		last := len(out) - 1
		switch {
		case line == ".nh" || line == "" && !strings.HasPrefix(out[last], ".EX"):
		case isTag && last > 0:
			if out[last-1] == ".PP" {
				out = append(out[:last-1], out[last])
			}
			last = len(out) - 1
			out = append(out[:last], ".TP", strings.TrimSuffix(out[last], "="), minus(text))
		case strings.HasPrefix(line, ".TH "):
			out = append(out, line, ".nr HY 0", ".nh", ".ad l")
		case line == ".EX" && last >= 0 && !strings.HasPrefix(out[last], "."):
			out = append(out, ".PP", line)
		case strings.HasPrefix(line, "."):
			out = append(out, line)
		default:
			out = append(out, minus(line))
		}
	}
	return strings.Join(out, "\n")
}

// minus writes each "-" so that it stays one: groff takes a bare one for a hyphen.
func minus(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\-`, "-"), "-", `\-`)
}
