// Package providers holds the domains of large mail providers, under which
// millions of people have their addresses: a block list that lists one of them
// whole is nearly always a mistake.
package providers

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed providers.txt
var text string

// Domains are the domains, in normal form and sorted. They are shared: do not
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
