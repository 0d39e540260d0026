package smtpfilter

import (
	"slices"

	"spamgate/blocklist/verdict"
)

// headerFindings keeps what the decision, the tag fields and the log need of a
// header's findings. However many there are, that is a few.
type headerFindings struct {
	// deciding are findings of which Decide and tagFields say what they would say
	// of all.
	deciding  []verdict.Finding
	strictest verdict.Action
	matched   bool // deciding has one with a match
	tags      []string

	// monitored are findings with the entries that only observe, each entry once.
	monitored []verdict.Finding
	places    []place

	// unreadable is the first finding of an address that could not be looked up.
	unreadable  verdict.Finding
	unreadables int
}

// place is where an entry stands.
type place struct {
	list, file string
	line       int
}

// add takes the next finding.
func (h *headerFindings) add(f verdict.Finding) {
	if f.Err != nil && !f.NoAnswer() {
		if h.unreadables++; h.unreadables == 1 {
			h.unreadable = f
		}
	}
	h.observe(f)
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

// observe notes the entries that only observe and are new, up to the lines that a
// message may cause.
func (h *headerFindings) observe(f verdict.Finding) {
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
