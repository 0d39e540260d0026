package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what happens to a message because of one sender. The greater
// action is the stricter one, except for Monitor.
type Action uint8

// The actions.
const (
	Accept  Action = iota // take the mail; the only action of allow lists
	Tag                   // take it, marked with a header field
	Discard               // reply 250 and drop it
	Defer                 // refuse it for now (4xx)
	Reject                // refuse it for good (5xx)

	// Monitor looks the sender up and logs the match. A list may ask for it; it
	// is never the action of a Match or of a Verdict.
	Monitor
)

var actionNames = []string{"accept", "tag", "discard", "defer", "reject", "monitor"}

// String returns the action's name, as in configurations: "reject".
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// MarshalText returns the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses an action's name. The error for another text lists the
// names.
func (a *Action) UnmarshalText(text []byte) error {
	i := slices.Index(actionNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown action %q: use %s", text, strings.Join(actionNames, ", "))
	}
	*a = Action(i)
	return nil
}
