package listfiles

import (
	"fmt"
	"strconv"
	"strings"
)

// Place is a place in the files of a list, where a page of its entries begins, or ends.
type Place struct {
	File   int   // number of the file
	Offset int64 // of the line in bytes; of a file that has no [listfile.Format.Lines] entries before the page
	Line   int   // number of the line, from 1; 0: it has to be counted
	Back   bool  // the page ends here
}

// LastPage is the place of the last page of a file.
func LastPage(file int) Place { return Place{File: file, Offset: maxOffset, Back: true} }

// maxOffset is behind the end of every file.
const maxOffset = 1 << 50

// String returns the place for a URL.
func (p Place) String() string {
	back := ""
	if p.Back {
		back = "-"
	}
	return fmt.Sprintf("%d.%d.%d%s", p.File, p.Offset, p.Line, back)
}

// ParsePlace parses a place. "" is the first page.
func ParsePlace(s string) (p Place, err error) {
	if s == "" {
		return Place{Line: 1}, nil
	}
	rest, back := strings.CutSuffix(s, "-")
	parts := strings.Split(rest, ".")
	var n [3]int64
	for i, limit := range []int64{1 << 20, maxOffset, maxOffset} {
		if len(parts) == len(n) && err == nil {
			n[i], err = strconv.ParseInt(parts[i], 10, 64)
		}
		if len(parts) != len(n) || err != nil || n[i] < 0 || n[i] > limit {
			return Place{}, fmt.Errorf("%q is not a place in a list", s)
		}
	}
	return Place{int(n[0]), n[1], int(n[2]), back}, nil
}
