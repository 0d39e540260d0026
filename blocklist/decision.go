package blocklist

// Match is an entry that a list holds for a sender.
type Match struct {
	// List is the list's name, File and Line where the entry stands (lines
	// count from 1). Entry is its key in normal form. Without confirmation
	// ([Config.FilterOnly]) there is no File and no Line.
	List  string
	File  string
	Line  int
	Entry string

	// Reason is the entry's comment, and may go to clients if PublicReason
	// says so. Note is its private comment, for logs and tools only.
	Reason, Note string
	PublicReason bool

	// Allow says that the list is an allow list. Action is what the list asks
	// for at the stage of the lookup, Accept from an allow list.
	Allow  bool
	Action Action

	// Rank is how specific the match is: its place among the sender's candidate
	// keys, 0 being the most specific. Ranks of one sender are comparable
	// across lists.
	Rank int32

	// Shielded says of a block list's match that an allow list cancelled it.
	Shielded bool
}

// IsZero reports that there is no match.
func (m Match) IsZero() bool { return m.List == "" }

// Decision is what the lists say of one sender, and why.
//
// Each list gives its own most specific match; an exception in a list cancels
// that list's less or equally specific matches, a more specific one stands. An
// allow list's match shields from block matches that are less or equally
// specific, an overriding allow list's from all. Of the block matches that
// stand the strictest action counts, and of equally strict ones the list that
// is configured first.
//
// The zero Decision is that of a sender whom no list knows.
type Decision struct {
	// Action is never Monitor.
	Action Action

	// Match is the entry that decided: the block list's whose action counts, or
	// else the strongest of the allow lists' matches. Zero where nothing
	// matched, or only what is monitored.
	Match Match

	// Matches holds every list's own match in the order of the configuration,
	// allow lists and monitored lists included; nil where there is none.
	Matches []Match

	// Shielded says that an allow list cancelled a match that would have
	// decided.
	Shielded bool

	// ClearsMessage says that an overriding allow list matched: when the sender
	// is the reverse-path, the header's senders are not looked up.
	ClearsMessage bool

	// Monitored holds those of Matches that come from block lists with action
	// Monitor, or with [Config.Monitor] from any block list. They decide
	// nothing. A shielded one is there too, marked: it would have done nothing
	// if it counted.
	Monitored []Match

	// Would is set with [Config.Monitor] alone, where something matched: the
	// decision that there would have been without it.
	Would *Decision
}

// weigh decides between the lists' own matches, which are in the order of the
// configuration, and marks those that are shielded. Override is the place of the
// first match from an overriding list, or -1.
func weigh(matches []Match, override int) Decision {
	d := Decision{Matches: matches, ClearsMessage: override >= 0}
	shield := override // the strongest allow match
	for i := range matches {
		if override < 0 && matches[i].Allow && (shield < 0 || matches[i].Rank < matches[shield].Rank) {
			shield = i
		}
	}
	for i := range matches {
		m := &matches[i]
		if m.Allow {
			continue
		}
		m.Shielded = override >= 0 || shield >= 0 && matches[shield].Rank <= m.Rank
		switch {
		case m.Action == Monitor:
			d.Monitored = append(d.Monitored, *m)
		case m.Shielded:
			d.Shielded = true
		case m.Action > d.Action:
			d.Action, d.Match = m.Action, *m
		}
	}
	if d.Action == Accept && shield >= 0 {
		d.Match = matches[shield]
	}
	return d
}

// observed is what becomes of a decision when every list only logs.
func observed(would Decision) Decision {
	d := Decision{Matches: would.Matches, ClearsMessage: would.ClearsMessage, Would: &would}
	if would.Action == Accept {
		d.Match = would.Match
	}
	for _, m := range would.Matches {
		if !m.Allow {
			d.Monitored = append(d.Monitored, m)
		}
	}
	return d
}
