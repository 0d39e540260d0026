package setup

import (
	"slices"

	"spamgate/internal/config"
)

// ListNames returns the names of the lists.
func ListNames(lists []config.List) []string {
	names := make([]string, len(lists))
	for i, l := range lists {
		names[i] = l.Name
	}
	return names
}

// ListIndex returns the index of a list in the configuration, or -1.
func ListIndex(c *config.Config, name string) int {
	return slices.IndexFunc(c.Lists, func(l config.List) bool { return l.Name == name })
}
