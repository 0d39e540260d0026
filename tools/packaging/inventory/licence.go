package main

import (
	"regexp"
	"strings"
)

// licence is one licence file of a module.
type licence struct {
	text string
	id   string // its SPDX identifier, or "" for a file that is not one known licence
}

var spaces = regexp.MustCompile(`\s+`)

// phrases identify a licence by sentences that all of its copies have. The first that
// fits counts. The GPL is not here: a module that offers another licence beside it has that.
var phrases = []struct {
	id    string
	texts []string
}{
	{"Apache-2.0", []string{"apache license version 2.0", "terms and conditions for use, reproduction"}},
	{"OFL-1.1", []string{"sil open font license version 1.1"}},
	{"BSD-3-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce", "neither the name"}},
	{"BSD-2-Clause", []string{"redistributions of source code must retain", "redistributions in binary form must reproduce"}},
	{"MIT", []string{"permission is hereby granted, free of charge", "the software is provided"}},
	{"BSL-1.0", []string{"boost software license - version 1.0"}},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
	{"CC-BY-4.0", []string{"creative commons attribution 4.0 international public license"}},
	{"FTL", []string{"the freetype project license"}},
}

// identify returns the SPDX identifier of a licence text, or "".
func identify(text string) string {
	plain := strings.ToLower(spaces.ReplaceAllString(strings.ReplaceAll(text, ",\n", "\n"), " "))
	plain = strings.ReplaceAll(plain, "apache license, version", "apache license version")
	plain = strings.ReplaceAll(plain, "mozilla public license, version", "mozilla public license version")
next:
	for _, p := range phrases {
		for _, t := range p.texts {
			if !strings.Contains(plain, t) {
				continue next
			}
		}
		return p.id
	}
	return ""
}

var notice = regexp.MustCompile(`(?i)^\W*(copyright\s+(\(c\)|©|\d{4}).*)`)

// holders returns the lines of a licence that name its copyright holders.
func holders(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if m := notice.FindStringSubmatch(strings.TrimSpace(line)); m != nil && !strings.Contains(m[1], "[yyyy]") {
			holder := regexp.MustCompile(`(?i)^copyright\s+(\(c\)|©)?\s*`).ReplaceAllString(m[1], "")
			lines = append(lines, strings.TrimSuffix(holder, " All rights reserved."))
		}
	}
	return lines
}
