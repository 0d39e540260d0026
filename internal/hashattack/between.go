package hashattack

import "strings"

// betweens are the texts that may separate a name's storeys, the best first:
// nothing; a dot, if without it the first label would be too long or the whole
// would be a public suffix (as any name.ck is); and one byte more, which moves the
// suffix from an even position to an odd one or back.
var betweens = []string{"", "0", ".", "0."}

// maxBetween is the length of the longest.
const maxBetween = 2

// enoughLandings is the number of final states that is enough. There are sixteen on
// average; with a quarter of them an attempt finds no name with probability e^-3.
const enoughLandings = 4

// chooseBetween returns the first of betweens that makes a valid name and leaves
// enough final states, or else the one that leaves most.
//
// For JS and DEK all are equal. AP has different steps at even and odd positions,
// so that possibly none of its sixteen states can be reached: x.example has its
// suffix at position 1, and no text that ends in .example at position 62 has AP's
// bits of it. If the suffix is at an even position both in the target and in the
// name, or at an odd one in both, there is at least one state, the target's own.
func (t *tower) chooseBetween() string {
	best, most := "", -1
	for _, between := range betweens {
		half := strings.Repeat("x", storeyWidth)
		if name := half + between + half + t.suffix; !shortLabels(name) || checkName(name, t.target) != nil {
			continue
		}
		n := len(t.landings(searched + len(between)))
		if n >= enoughLandings {
			return between
		}
		if n > most {
			best, most = between, n
		}
	}
	return best
}

// shortLabels reports whether no label of a name is longer than maxLabel.
func shortLabels(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > maxLabel {
			return false
		}
	}
	return true
}
