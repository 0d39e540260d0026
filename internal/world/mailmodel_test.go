package world

import (
	"slices"
	"strings"
)

// An action is what happens to mail, the stricter one greater.
type action int

const (
	accept action = iota
	tag
	discard
	deferred
	reject
	monitor
)

var actionNames = []string{"accept", "tag", "discard", "defer", "reject", "monitor"}

func (a action) String() string { return actionNames[a] }

// list is a [[list]].
type list struct {
	name                 string
	allow, override      bool
	action, headerAction action // headerAction accept: as action
	envelope, header     bool   // its stages
	exact, perRecipient  bool
	spf, dkim            bool // proven_by
	lines                []string

	known map[[2]string]int // of own, for these lines
}

func (l *list) actionAt(header bool) action {
	if header && l.headerAction != accept {
		return l.headerAction
	}
	return l.action
}

// rule is a [[recipient_policy]].
type rule struct {
	match     []string
	exempt    bool
	lists     []string // nil: all
	maxAction action   // accept: none
	monitor   bool
}

// world is a configuration.
type configuration struct {
	lists            []list
	rules            []rule
	exemptRecipients []string // "user@", "@domain" or "user@domain"
	exemptClient     bool
	monitor          bool
	srs, batv        bool // unwrap
	checkBounces     bool
	tagMixed         bool // mixed_headers = "tag"
	faults           []outage
}

// fault says that the lists cannot be asked: for the keys of a recipient, or about a sender.
type outage struct {
	rcpt             string // the lists with entries for this recipient; "": all lists
	keys             bool
	sender           string // "": every sender
	envelope, header bool
}

// about reports whether the lists cannot be asked about a sender.
func (f *outage) about(header bool, sender string) bool {
	return !f.keys && (header && f.header || !header && f.envelope) && (f.sender == "" || f.sender == sender)
}

// address is a sender and the senders that were wrapped into it: chain[0] is what is written,
// chain[i+1] was wrapped into chain[i] by schemes[i]. All of chain is in normal form.
type address struct {
	written string
	chain   []string
	schemes []scheme
}

type scheme int

const (
	srs scheme = iota
	batv
)

// field is a field of a header and its addresses.
type field struct {
	name      string
	addresses []address
}

// A fact is what comes of a question about a proof.
type fact int

const (
	fails      fact = iota
	holds           // SPF passes, a signature is valid
	unanswered      // a temporary error
)

type signature struct {
	domain string
	fact   fact
}

// message is a message with its envelope.
type message struct {
	from       address
	rcpts      []string
	fields     []field
	spf        fact
	trueClient bool // false: SPF does not know whose address to ask about
	signatures []signature
	refused    map[string]int // by the next hop, with that code
}

// A phase is how much of a message is known.
type phase int

const (
	atRcpt phase = iota
	atHeader
	atBody
)

// A state says whether a sender is proven, the stronger one greater.
type state int

const (
	notProven state = iota
	unknown
	pending
	proven
)

const maxSignatures = 5

// proof returns whether a sender of a message is proven for a list.
func (m *message) proof(l *list, sender string, header, wrapped bool, current phase) state {
	best := notProven
	if l.spf && !header && !wrapped && m.trueClient {
		best = max(best, [...]state{fails: notProven, holds: proven, unanswered: unknown}[m.spf])
	}
	if !l.dkim || sender == "" {
		return best
	}
	if current == atRcpt {
		return max(best, pending)
	}
	froms := 0
	for _, f := range m.fields {
		if f.name == "From" {
			froms++
		}
	}
	if froms != 1 {
		return best
	}
	_, domain, _ := strings.Cut(sender, "@")
	for _, s := range m.signatures[:min(maxSignatures, len(m.signatures))] {
		switch {
		case organization(s.domain) != organization(domain):
		case current == atHeader:
			best = max(best, pending)
		default:
			best = max(best, [...]state{fails: notProven, holds: proven, unanswered: unknown}[s.fact])
		}
	}
	return best
}

// organization returns the name below the public suffix.
func organization(domain string) string {
	labels := strings.Split(domain, ".")
	suffix := 1
	for _, s := range []string{"co.uk", "github.io"} {
		if domain == s || strings.HasSuffix(domain, "."+s) {
			suffix = 2
		}
	}
	return strings.Join(labels[max(0, len(labels)-suffix-1):], ".")
}

const maxWrapped = 4

// senders returns the chain of a sender as far as the gate unwraps it.
func (w *configuration) senders(a address) []string {
	n := 1
	for n < len(a.chain) && n <= maxWrapped && (a.schemes[n-1] == srs && w.srs || a.schemes[n-1] == batv && w.batv) {
		n++
	}
	return a.chain[:n]
}

// ruling is what the lists say of one sender for one recipient.
type ruling struct {
	action action
	list   string // whose match decides, if action is not accept
	sender string // the wrapped sender whose match that is; "" for the outer one
	clears bool   // an overriding list has the reverse-path

	// mayClear says that it would, if a question about a proof had been answered.
	mayClear bool
}

// question is one sender of a message, about one recipient.
type question struct {
	w      *configuration
	m      *message
	a      address
	header bool
	rcpt   string
	rule   rule
}

// listed returns the answer if allow matches count for which counts returns true.
func (q *question) listed(counts func(l *list, sender string, wrapped bool) bool) ruling {
	var best ruling
	shieldAll := false // an allow match of the outer sender shields all that are wrapped
	for level, sender := range q.w.senders(q.a) {
		shield, override := -1, false
		for i := range q.w.lists {
			l := &q.w.lists[i]
			rank := q.own(l, sender)
			if !l.allow || rank < 0 || !counts(l, sender, level > 0) {
				continue
			}
			if shield < 0 || rank < shield {
				shield = rank
			}
			override = override || l.override
		}
		if level == 0 {
			shieldAll = shield >= 0
			best.clears = override && !q.header
		} else if shieldAll {
			break
		}
		for i := range q.w.lists {
			l := &q.w.lists[i]
			rank := q.own(l, sender)
			a := l.actionAt(q.header)
			if l.allow || rank < 0 || a == monitor || override || shield >= 0 && shield <= rank {
				continue
			}
			if a > best.action {
				best.action, best.list, best.sender = a, l.name, ""
				if level > 0 {
					best.sender = sender
				}
			}
		}
	}
	if q.w.monitor {
		return ruling{clears: best.clears}
	}
	return best
}

// own returns the rank of a list's own match if the list counts, else -1.
func (q *question) own(l *list, sender string) int {
	if q.header && !l.header || !q.header && !l.envelope || q.rule.lists != nil && !slices.Contains(q.rule.lists, l.name) {
		return -1
	}
	return l.own(sender, q.rcpt)
}

// consequence is what a proof can change about an answer.
func (a ruling) consequence() ruling {
	return ruling{action: a.action, clears: a.clears, mayClear: a.mayClear}
}

// answer returns what the lists say now, and what they say if all pending proofs hold.
func (q *question) answer(current phase) (today, proved ruling) {
	with := func(least state, pendingHolds bool) ruling {
		return q.listed(func(l *list, sender string, wrapped bool) bool {
			if !l.spf && !l.dkim {
				return true
			}
			s := q.m.proof(l, sender, q.header, wrapped, current)
			if s == pending {
				return pendingHolds
			}
			return s >= least
		})
	}
	// What an unanswered question might have made milder is deferred at most.
	soften := func(a, mild ruling) ruling {
		if (a.action == reject || a.action == discard) && mild.action < a.action {
			a.action = deferred
		}
		a.mayClear = mild.clears && !a.clears
		return a
	}
	// A proof that changes nothing is not asked for.
	if none, all := with(proven+1, false), with(notProven, true); none.consequence() == all.consequence() {
		return none, none
	}
	today = soften(with(proven, false), with(unknown, false))
	proved = soften(with(proven, true), with(unknown, true))
	if today.consequence() == proved.consequence() {
		return today, today // nothing is waited for
	}
	return today, proved
}
