package listedit

import (
	"io"

	"spamgate/blocklist/listfile"
)

// Line is a line of a list, without its end.
type Line struct {
	Number int // from 1
	Text   string
}

// Lines returns the lines of a plain list that have an entry, in whatever spelling.
func Lines(old io.ReadSeeker, o listfile.Options, e listfile.Entry) ([]Line, error) {
	var numbers []int
	err := FindWanted(old, o, &Wanted{Keys: []string{Key(e)}}, func(found listfile.Entry) error {
		if found.Exception == e.Exception {
			numbers = append(numbers, found.Line)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	texts, err := linesOf(old, numbers)
	var lines []Line
	for _, n := range numbers {
		lines = append(lines, Line{n, texts[n]})
	}
	return lines, err
}
