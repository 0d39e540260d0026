package words

import (
	"fmt"
	"slices"
	"strings"
)

// Actions are the actions in the history, from the one asked for most.
var Actions = []string{"reject", "defer", "accept", "tag", "discard", "monitor"}

// ParseAction checks the name of an action.
func ParseAction(s string) (string, error) {
	if !slices.Contains(Actions, s) {
		return "", fmt.Errorf("%q is not an action: use %s", s, strings.Join(Actions, ", "))
	}
	return s, nil
}
