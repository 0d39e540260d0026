package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// How the list keeper's commands write measures and longer texts.

// ageText is a duration in the unit that suits it: "12 s", "3 d".
func ageText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d/time.Second)))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	default:
		return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
	}
}

// smallText is a rate or a part in a few characters; what is below anybody's
// interest is 0.
func smallText(v float64) string {
	switch {
	case v < leastFPR:
		return "0"
	case v < 0.001:
		return strings.Replace(fmt.Sprintf("%.0e", v), "e-0", "e-", 1)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// smallFPR is a rate at which a filter errs in a few characters: never quite 0,
// and "-" of a list that has none of its own.
func smallFPR(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v < leastFPR:
		return "<" + strings.TrimSpace(strings.TrimPrefix(fprText(v), "<"))
	}
	return smallText(v)
}

// textColumns is how wide text is where nothing longer has to stay whole.
const textColumns = 80

// printWrapped prints a text behind a label, which ends with a space, in lines
// that are indented like the first, or less where the label is long.
func printWrapped(b *bytes.Buffer, label, text string) {
	indent := len(label)
	if indent > textColumns/4 {
		indent = 4
	}
	line, begun := label, false
	for word := range strings.FieldsSeq(text) {
		switch {
		case !begun:
			line += word
		case len(line)+1+len(word) > textColumns:
			fmt.Fprintln(b, line)
			line = strings.Repeat(" ", indent) + word
		default:
			line += " " + word
		}
		begun = true
	}
	fmt.Fprintln(b, strings.TrimRight(line, " "))
}
