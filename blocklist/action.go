package blocklist

import (
	"fmt"
	"strings"
)

// Action is what a list asks for when it matches. Of two actions the greater is
// the stricter, Monitor apart, which is no step of that ladder.
type Action uint8

// The actions.
const (
	Accept  Action = iota // take the mail; the only action of allow lists
	Tag                   // take it, marked with a header field
	Discard               // say that it was taken, and drop it
	Defer                 // refuse for now (4xx)
	Reject                // refuse for good (5xx)
	Monitor               // look up and log, decide nothing
)

var actionNames = []string{"accept", "tag", "discard", "defer", "reject", "monitor"}

// String is the action's name, as in configurations: "reject".
func (a Action) String() string { return nameOf(actionNames, "Action", uint8(a)) }

// MarshalText writes the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads an action's name; the error for another text lists the
// names.
func (a *Action) UnmarshalText(text []byte) error {
	i, err := indexOf(actionNames, "action", string(text))
	if err == nil {
		*a = Action(i)
	}
	return err
}

// ListType says which way a list's matches count.
type ListType uint8

// The types of lists.
const (
	Block ListType = iota
	Allow
)

var listTypeNames = []string{"block", "allow"}

// String is the type's name, as in configurations: "block".
func (t ListType) String() string { return nameOf(listTypeNames, "ListType", uint8(t)) }

// MarshalText writes the type's name.
func (t ListType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a type's name; the error for another text lists the names.
func (t *ListType) UnmarshalText(text []byte) error {
	i, err := indexOf(listTypeNames, "list type", string(text))
	if err == nil {
		*t = ListType(i)
	}
	return err
}

// Stage says where a sender stands: in the envelope or in a header field. It is
// a bit set, so that a list can name several.
type Stage uint8

// The stages.
const (
	Envelope Stage = 1 << iota // the reverse-path
	Header                     // an address in a header field, such as From

	allStages = Envelope | Header
)

var stageNames = []string{"envelope", "header"}

// String is the stages' names with commas between: "envelope,header".
func (s Stage) String() string {
	var names []string
	for i, name := range stageNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// MarshalText writes what String says.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String writes: one stage's name, or several with
// commas between.
func (s *Stage) UnmarshalText(text []byte) error {
	var stages Stage
	for name := range strings.SplitSeq(string(text), ",") {
		i, err := indexOf(stageNames, "stage", name)
		if err != nil {
			return err
		}
		stages |= 1 << i
	}
	*s = stages
	return nil
}

func nameOf(names []string, kind string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func indexOf(names []string, what, name string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q: use %s", what, name, strings.Join(names, ", "))
}
