package listfile

import (
	"fmt"
	"strings"
	"time"
)

const (
	untilWord = "until="
	untilHint = "write until=2026-12-31 or until=2026-12-31T18:00:00Z"
)

// errUntil is an invalid expiry.
type errUntil string

func (e errUntil) Error() string { return fmt.Sprintf("%s%s is not a time", untilWord, string(e)) }

// takeUntil removes the expiry from a comment, and returns it, or 0 if there is
// none.
func takeUntil(comment string) (rest string, until int64, err error) {
	if !strings.Contains(comment, untilWord) {
		return comment, 0, nil
	}
	words := strings.Fields(comment)
	kept := words[:0]
	for _, w := range words {
		value, ok := strings.CutPrefix(w, untilWord)
		if !ok {
			kept = append(kept, w)
			continue
		}
		t, err := ParseUntil(value)
		if err != nil {
			return "", 0, err
		}
		if until == 0 || t < until {
			until = t // the earlier of two
		}
	}
	if until == 0 {
		return comment, 0, nil // as in "the-until=sign"
	}
	return strings.Join(kept, " "), until, nil
}

// ParseUntil parses an expiry: a time as in RFC 3339, or a date, which means the
// end of that day in UTC. It returns seconds since 1970, never 0.
func ParseUntil(s string) (int64, error) {
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		return max(1, day.AddDate(0, 0, 1).Unix()), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, errUntil(s)
	}
	return max(1, t.Unix()), nil
}

// formatUntil formats an expiry as ParseUntil parses it.
func formatUntil(until int64) string {
	return time.Unix(until, 0).UTC().Format(time.RFC3339)
}
