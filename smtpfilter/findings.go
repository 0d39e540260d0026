package smtpfilter

import (
	"slices"

	"spamgate/blocklist/verdict"
)

// HeaderFindings are the few of a header's findings that the decision, the tag fields and
// the log need.
type HeaderFindings struct {
	// Deciding are enough findings for verdict.Decide and Tags to return the same as
	// for all findings.
	Deciding  []verdict.Finding
	strictest verdict.Action
	proved    verdict.Action // the strictest if all pending proofs hold
	matched   bool           // Deciding has a finding with a match
	notAsked  bool           // likewise, for which the lists could not be asked
	awaited   []string       // domains of the signatures that those in Deciding wait for
	tags      []string

	// Monitored are findings with the entries that only monitor, each entry once.
	Monitored []verdict.Finding
	places    []place

	// Fault says why the message is refused, whoever its senders are; else nil. Empty are the
	// fields without an address.
	Fault     *HeaderFault
	Empty     []string
	MessageID string

	// Unreadable is the first finding of an address that could not be looked up, and
	// Unreadables the number of them.
	Unreadable  verdict.Finding
	Unreadables int
}

// maxLines bounds the lines about the senders in one header.
const maxLines = 10

// place is the place of an entry.
type place struct {
	list, file string
	line       int
	entry      string // of a list in DNS
}

// add adds a finding.
func (h *HeaderFindings) add(f *verdict.Finding) {
	if f.Err != nil && !noAnswer(f) {
		if h.Unreadables++; h.Unreadables == 1 {
			h.Unreadable = *f
		}
	}
	h.monitor(f)

	action := proved(&f.Verdict).Action
	keep := f.Verdict.Action > h.strictest || action > h.proved
	h.strictest, h.proved = max(h.strictest, f.Verdict.Action), max(h.proved, action)
	keep = h.await(f) || keep
	if noAnswer(f) && !h.notAsked {
		keep, h.notAsked = true, true
	}
	if !f.Verdict.Match.IsZero() && !h.matched {
		keep, h.matched = true, true
	}
	tags := len(h.tags)
	if h.tags = addTag(h.tags, &f.Verdict); keep || len(h.tags) > tags {
		h.Deciding = append(h.Deciding, *f)
		h.Deciding[len(h.Deciding)-1].Verdict.Monitored = nil
	}
}

// await notes the domains of the signatures that a finding waits for, and reports whether there
// are new ones.
func (h *HeaderFindings) await(f *verdict.Finding) bool {
	if !f.Verdict.Pending {
		return false
	}
	known := len(h.awaited)
	for _, p := range f.Verdict.Proofs {
		for _, d := range p.Domains {
			if !slices.Contains(h.awaited, d) {
				h.awaited = append(h.awaited, d)
			}
		}
	}
	return len(h.awaited) > known
}

// monitor adds the new entries that only monitor, up to maxLines.
func (h *HeaderFindings) monitor(f *verdict.Finding) {
	if monitored := fresh(&h.places, f.Verdict.Monitored); monitored != nil {
		h.Monitored = append(h.Monitored, *f)
		h.Monitored[len(h.Monitored)-1].Verdict.Monitored = monitored
	}
}

// fresh returns the entries whose places are new, and adds these, up to maxLines.
func fresh(places *[]place, matches []verdict.Match) []verdict.Match {
	var fresh []verdict.Match
	for _, m := range matches {
		pos := place{list: m.List, file: m.File, line: m.Line}
		if m.Line == 0 && !m.Unconfirmed {
			pos.entry = m.Entry
		}
		if len(*places) < maxLines && !slices.Contains(*places, pos) {
			*places = append(*places, pos)
			fresh = append(fresh, m)
		}
	}
	return fresh
}
