package report

import (
	"fmt"
	"strings"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/text"
)

// HeldSum returns the checksum of the content that is held, or "" if its index is to be built
// once more.
func HeldSum(l blocklist.ListStats) (string, error) {
	switch {
	case l.HeldSum != "" || l.Retry:
		return l.HeldSum, nil
	case l.Held:
		return "", fmt.Errorf("list %s cannot be accepted as it is: %w", l.Name, l.Err)
	case l.Err != nil:
		return "", fmt.Errorf("list %s: %w: what is on disk cannot be used (%w); mend that first", l.Name, admin.ErrNothingHeld, l.Err)
	}
	return "", fmt.Errorf("list %s: %w: what is on disk serves, with %s", l.Name, admin.ErrNothingHeld, text.Count(l.Entries, "entry", "entries"))
}

func FindStats(set *blocklist.Set, name string) (blocklist.ListStats, error) {
	var names []string
	for _, l := range set.Stats().Lists {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return blocklist.ListStats{}, fmt.Errorf("%w as %q; there is %s", admin.ErrNoList, name, strings.Join(names, ", "))
}
