package check

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
)

// why explains a decision in one sentence.
func why(d verdict.Verdict) string {
	if d.Would != nil {
		return fmt.Sprintf(`mode = "monitor" in [policy]: it would be %s, and is only logged`, d.Would.Action)
	}
	return whyDecided(d) + whyProof(d)
}

func whyDecided(d verdict.Verdict) string {
	switch m := d.Match; {
	case d.Matches == nil:
		return "no list has an entry that counts"
	case m.IsZero():
		for _, m := range d.Matches {
			switch {
			case m.Unproven:
				return fmt.Sprintf("list %s allows only a proven sender, and no block list has an entry that stands", m.List)
			case m.Allow:
				return fmt.Sprintf("list %s allows the sender within, %s, and no block list has an entry that stands", m.List, m.Sender)
			}
		}
		return "what matches is only logged"
	case m.Allow && d.ClearsMessage:
		return fmt.Sprintf("list %s overrides every block list", m.List)
	case m.Allow && d.Shielded:
		return fmt.Sprintf("list %s shields the sender from entries that are no more specific", m.List)
	case m.Allow:
		return fmt.Sprintf("list %s allows the sender, and no block list has an entry that stands", m.List)
	case m.Sender != "":
		return fmt.Sprintf("%s is the strictest action of the block lists whose entries stand; the entry is for the sender within, %s", m.Action, m.Sender)
	}
	return fmt.Sprintf("%s is the strictest action of the block lists whose entries stand", d.Match.Action)
}

// whyProof says what proofs have to do with a decision.
func whyProof(d verdict.Verdict) string {
	lists := unproven(d)
	switch {
	case d.Action == verdict.Defer && d.Match.Action > verdict.Defer:
		return "; it is deferred, because a proof has no answer now"
	case d.Pending && d.Proved.Action != d.Action:
		return fmt.Sprintf("; if the sender is proven, it is %s", d.Proved.Action)
	case d.Pending:
		return "; if the sender is proven, its whole message passes"
	case d.Proofs != nil && len(lists) > 0:
		return fmt.Sprintf("; %s does not count, because the sender is not proven", strings.Join(lists, ", "))
	case d.Proofs != nil:
		return "; the sender is proven"
	}
	return ""
}

// unproven returns the allow lists whose entries do not count, because the sender is not
// proven.
func unproven(d verdict.Verdict) []string {
	var lists []string
	for _, m := range d.Matches {
		if name := "list " + m.List; m.Unproven && !slices.Contains(lists, name) {
			lists = append(lists, name)
		}
	}
	return lists
}

// role describes the effect of a list's match.
func role(d verdict.Verdict, i int) string {
	m := d.Matches[i]
	own := strongest(d, m.Sender)
	switch {
	case m.Unproven && d.Pending:
		return "counts only if the sender is proven by " + orWords(m.ProvenBy)
	case m.Unproven:
		return "does not count: allows only a sender that is proven by " + orWords(m.ProvenBy)
	case m.Allow && i == own && d.ClearsMessage && m.Sender == "":
		return "overrides every block list"
	case m.Allow && i == own && m.Sender != "":
		return "cancels block entries for the sender within that are no more specific, and nothing else"
	case m.Allow && i == own:
		return "allows; shields from block entries that are no more specific"
	case m.Allow:
		return fmt.Sprintf("allows, as list %s does more strongly", d.Matches[own].List)
	case m.Shielded && m.Monitor:
		return fmt.Sprintf("%s, but shielded by list %s", verdict.Monitor, shieldOf(d, m))
	case m.Shielded:
		return fmt.Sprintf("%s, but shielded by list %s", m.Action, shieldOf(d, m))
	case m.Monitor:
		return "only logged"
	case m == d.Match:
		return m.Action.String() + ", which decides"
	case m.Action < d.Match.Action:
		return fmt.Sprintf("%s, which is milder", m.Action)
	}
	return fmt.Sprintf("%s, as list %s before it", m.Action, d.Match.List)
}

// shieldOf returns the allow list that shields from a match: one that matches the same sender
// if it can, or else one that matches the address itself.
func shieldOf(d verdict.Verdict, m verdict.Match) string {
	own, outer := strongest(d, m.Sender), strongest(d, "")
	if own < 0 || outer >= 0 && d.Matches[own].Rank > m.Rank {
		own = outer
	}
	return d.Matches[own].List
}

// strongest returns the index of the allow list's match that shields a sender, or -1: "" is the
// address itself, the others are within. A verdict does not say which list overrides; if an
// allow list decides, its match is the verdict's.
func strongest(d verdict.Verdict, sender string) int {
	best := -1
	for i, m := range d.Matches {
		switch {
		case !m.Allow || m.Unproven || m.Sender != sender:
		case m == d.Match:
			return i
		case best < 0 || m.Rank < d.Matches[best].Rank:
			best = i
		}
	}
	return best
}

// orWords returns proofs of which any will do: "spf or dkim".
func orWords(by verdict.Proofs) string {
	return strings.ReplaceAll(by.String(), ",", " or ")
}
