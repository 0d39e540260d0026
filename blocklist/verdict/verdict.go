package verdict

import "strconv"

// Match is an entry that a list holds for a sender.
type Match struct {
	// List is the list's name, File and Line where the entry stands (lines
	// count from 1). Entry is its key in normal form. For a list in DNS, File is
	// "dns:" with the zone, Line 0, and Entry the listed domain.
	List  string `json:"list"`
	Entry string `json:"entry"`
	File  string `json:"file"`
	Line  int    `json:"line"`

	// Reason is the entry's comment, which clients may see if PublicReason is
	// set. Note is its private comment, for logs and tools only.
	Reason       string `json:"reason,omitempty"`
	Note         string `json:"note,omitempty"`
	PublicReason bool   `json:"-"`

	// Unconfirmed says that a filter alone decided. No index was asked whether
	// the list has the entry, and File and Line are empty.
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// Action is what the entry asks for at the stage of the lookup. It is Accept
	// for an allow list and for a list that only monitors.
	Action Action `json:"action"`

	// For is the recipient's side of an entry in a list with entries for recipients:
	// "ann@example.net", "@example.net". It is "" in other lists.
	For string `json:"for,omitempty"`

	// Sender is the sender that a forwarder wrapped into the address, if the entry
	// matches that one. It is "" if the entry matches the address itself.
	Sender string `json:"sender,omitempty"`

	// ProvenBy says that the entry of an allow list counts only if one of the proofs
	// holds. Unproven says that none does, so that the entry does not count.
	ProvenBy Proofs `json:"proven_by,omitempty"`
	Unproven bool   `json:"unproven,omitempty"`

	// Allow says that the list is an allow list, Monitor that it only monitors.
	Allow   bool `json:"-"`
	Monitor bool `json:"-"`

	// Shielded says that an allow list cancelled the match of this block list.
	Shielded bool `json:"-"`

	// Rank is the place of the matching key among the sender's keys: 0 is the
	// most specific. Ranks of one sender are comparable across lists.
	Rank int32 `json:"-"`
}

// Source returns where the entry is: "file:line", or for a list in DNS its zone,
// "dns:dbl.example.org".
func (m Match) Source() string {
	if m.Line == 0 {
		return m.File
	}
	return m.File + ":" + strconv.Itoa(m.Line)
}

// IsZero reports whether there is no match.
func (m Match) IsZero() bool { return m.List == "" }

// Verdict is what the lists say of one sender, and why.
//
// Each list gives its own most specific match. An exception in a list cancels
// that list's less or equally specific matches; a more specific one stands. An
// allow list's match shields from block matches that are less or equally
// specific, an overriding allow list's match from all. Of the block matches
// that stand the strictest action counts. Of equally strict ones the list that
// is configured first counts.
//
// The zero Verdict is that of a sender whom no list knows.
type Verdict struct {
	Action Action

	// Match is the entry that decided: that of the block list whose action
	// counts, or else the strongest of the allow lists' matches. It is zero if
	// nothing matched, or only lists that monitor.
	Match Match

	// Matches holds every list's own match in the order of the configuration,
	// including allow lists and lists that monitor. It is nil if there is none.
	Matches []Match

	// Shielded says that an allow list cancelled a match that would have
	// decided.
	Shielded bool

	// ClearsMessage says that an overriding allow list matched. For the
	// reverse-path it settles the whole message: the header's senders are not
	// looked up.
	ClearsMessage bool

	// MayClear says that ClearsMessage might be set if a question had an answer now
	// (ProofUnknown). So what refuses the message because of its header should defer it.
	MayClear bool

	// Monitored holds those of Matches that would count if their block lists
	// did not only monitor. They decide nothing. A lookup in a Set lists the
	// shielded ones too, a Judge omits them.
	Monitored []Match

	// Would is the verdict that there would have been if not all lists only
	// monitored. It is nil if they do not, or if nothing matched.
	Would *Verdict

	// Proofs are those that an allow entry asked for, as far as the action depends on it.
	Proofs []Proof

	// Pending says that the verdict may be another one once more of the message is
	// known: the header, or with [Message.HeaderKnown] the body. A Judge sets it only if
	// [Message.BodyKnown] is false.
	Pending bool

	// Proved is the verdict if the pending proofs hold, which is the milder one. It is
	// nil if none is pending.
	Proved *Verdict
}

// Monitor returns what becomes of a verdict if every list only monitors: it accepts the
// sender, and Would is the verdict itself. Pending proofs are not part of it.
func (v Verdict) Monitor() Verdict {
	d := Verdict{Matches: v.Matches, ClearsMessage: v.ClearsMessage, Would: &v}
	if v.Action == Accept {
		d.Match = v.Match
	}
	for _, m := range v.Matches {
		if !m.Allow {
			d.Monitored = append(d.Monitored, m)
		}
	}
	return d
}
