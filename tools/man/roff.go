package main

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// tidy corrects a page that go-md2man wrote: options become paragraphs with a tag, lines
// are neither hyphenated nor stretched, and each "-" can be copied as such.
func tidy(page string) string {
	var out []string
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		text, isTag := strings.CutPrefix(line, "\t")
		last := len(out) - 1
		switch {
		case line == ".nh" || line == "":
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
		case line == ".EE":
			out = append(toTheLeft(out), line)
		case strings.HasPrefix(line, "."):
			out = append(out, line)
		default:
			out = append(out, minus(line))
		}
	}
	return strings.Join(out, "\n")
}

// width is that of the lines which fit on 80 columns after the margin of a page.
const width = 80 - 7

// toTheLeft moves the example that ends a page to the left if its lines are too wide.
func toTheLeft(page []string) []string {
	begin := len(page) - 1
	for page[begin] != ".EX" {
		begin--
	}
	wide := func(line string) bool { return utf8.RuneCountInString(strings.ReplaceAll(line, `\`, "")) > width }
	if !slices.ContainsFunc(page[begin:], wide) {
		return page
	}
	return append(slices.Insert(page, begin+1, ".in 2n"), ".in")
}

// minus writes each "-" so that it stays one: groff takes a bare one for a hyphen.
func minus(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, `\-`, "-"), "-", `\-`)
}
