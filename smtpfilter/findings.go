package smtpfilter

import (
	"slices"

	"spamgate/blocklist/verdict"
)

// headerFindings keeps the few of a header's findings that the decision, the tag fields and
// the log need.
type headerFindings struct {
	// deciding are enough findings for verdict.Decide and tagFields to return the
	// same as for all findings.
	deciding  []verdict.Finding
	strictest verdict.Action
	matched   bool // deciding has a finding with a match
	tags      []string

	// monitored are findings with the entries that only monitor, each entry once.
	monitored []verdict.Finding
	places    []place

	// unreadable is the first finding of an address that could not be looked up, and
	// unreadables the number of them.
	unreadable  verdict.Finding
	unreadables int
}

// place is the place of an entry.
type place struct {
	list, file string
	line       int
}

// add adds a finding.
func (h *headerFindings) add(f verdict.Finding) {
	if f.Err != nil && !f.NoAnswer() {
		if h.unreadables++; h.unreadables == 1 {
			h.unreadable = f
		}
	}
	h.monitor(f)
	f.Verdict.Monitored = nil

	keep := f.Verdict.Action > h.strictest
	h.strictest = max(h.strictest, f.Verdict.Action)
	if !f.Verdict.Match.IsZero() && !h.matched {
		keep, h.matched = true, true
	}
	if f.Verdict.Action == verdict.Tag && len(h.tags) < maxTags {
		if field := tagField(f.Verdict.Match); !slices.Contains(h.tags, field) {
			keep = true
			h.tags = append(h.tags, field)
		}
	}
	if keep {
		h.deciding = append(h.deciding, f)
	}
}

// monitor adds the new entries that only monitor, up to maxLines.
func (h *headerFindings) monitor(f verdict.Finding) {
	var fresh []verdict.Match
	for _, m := range f.Verdict.Monitored {
		at := place{m.List, m.File, m.Line}
		if len(h.places) < maxLines && !slices.Contains(h.places, at) {
			h.places = append(h.places, at)
			fresh = append(fresh, m)
		}
	}
	if fresh != nil {
		f.Verdict.Monitored = fresh
		h.monitored = append(h.monitored, f)
	}
}
