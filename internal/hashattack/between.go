package hashattack

import "strings"

// betweens are what may stand between a name's storeys, the best first: nothing;
// a dot where without one the first label would be too long, or the whole a
// public suffix (as any name.ck is); and one byte more, which moves the suffix
// from an even place to an odd one or back.
var betweens = []string{"", "0", ".", "0."}

// maxBetween is the length of the longest.
const maxBetween = 2

// enoughLandings is how many states to land in are enough: of the sixteen on
// average a quarter leaves an attempt without a name with a chance of e^-3.
const enoughLandings = 4

// chooseBetween is the first of betweens that makes a good name and leaves enough
// states to land in, else the one that leaves most.
//
// For JS and DEK one is as good as another. AP's step is another one at even and
// at odd places, and none of its sixteen states may have any before it there:
// x.example has its suffix at place 1, and no text that ends in .example at place
// 62 has AP's bits of it. Where the suffix stands as in the target, at an even or
// at an odd place, there is at least one state, the target's own.
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
