package setup

import (
	"slices"

	"spamgate/internal/config"
)

func ListNames(lists []config.List) []string {
	names := make([]string, len(lists))
	for i, l := range lists {
		names[i] = l.Name
	}
	return names
}

// ListIndex is the place of a list in the configuration, -1 where it has none.
func ListIndex(c *config.Config, name string) int {
	return slices.IndexFunc(c.Lists, func(l config.List) bool { return l.Name == name })
}
