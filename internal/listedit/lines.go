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

// name tells entries apart, whatever their spelling.
type name struct {
	key       string
	exception bool
}

// Lines returns for each entry the lines of a plain list that have it, in whatever spelling.
func Lines(old io.ReadSeeker, o listfile.Options, entries []listfile.Entry) (lines [][]Line, err error) {
	wanted := Wanted{}
	pos := make(map[name][]int, len(entries))
	for i, e := range entries {
		n := name{Key(e), e.Exception}
		if pos[n] == nil {
			wanted.Keys = append(wanted.Keys, n.key)
		}
		pos[n] = append(pos[n], i)
	}
	lines = make([][]Line, len(entries))
	var numbers []int
	err = FindWanted(old, o, &wanted, func(found listfile.Entry) error {
		wanting := pos[name{Key(found), found.Exception}]
		for _, i := range wanting {
			lines[i] = append(lines[i], Line{Number: found.Line})
		}
		if wanting != nil { // not only its opposite
			numbers = append(numbers, found.Line)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	texts, err := linesOf(old, numbers)
	for i := range lines {
		for j := range lines[i] {
			lines[i][j].Text = texts[lines[i][j].Number]
		}
	}
	return lines, err
}
