// Package providers holds the domains of large mail providers, with millions of users
// each: an entry that blocks all of one is nearly always a mistake.
package providers

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed providers.txt
var text string

// Domains returns the domains, sorted and in normal form. They are shared: do not
// change them.
var Domains = sync.OnceValue(func() []string {
	var domains []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			domains = append(domains, line)
		}
	}
	slices.Sort(domains)
	return slices.Clip(domains)
})
