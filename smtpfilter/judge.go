package smtpfilter

import (
	"errors"
	"fmt"
)

// Action is what happens to a message because of one sender. The stricter
// action is the greater one.
type Action uint8

// The actions, from the mildest to the strictest.
const (
	Accept  Action = iota // pass it on
	Tag                   // pass it on with an X-Spamgate field in front
	Discard               // say 250 and drop it
	Defer                 // refuse it for now (4xx)
	Reject                // refuse it for good (5xx)
)

var actionNames = [...]string{"accept", "tag", "discard", "defer", "reject"}

func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// MarshalText writes the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Stage says where a sender was found.
type Stage uint8

// The stages.
const (
	Envelope Stage = iota // the reverse-path
	Header                // a field of the message

	// HeaderForm is a field of the message, too, but the address is only what
	// servers may make of it. It can block and nothing else: neither allow lists
	// nor exceptions count. "user@" asks for the entries of a local part.
	HeaderForm

	// HeaderWord is HeaderForm for what may be a part of a name: only entries
	// that name the local part count, "user@" and "user@domain".
	HeaderWord

	// HeaderName is HeaderWord beside addresses that allow entries let in: only
	// entries of whole addresses count, "user@domain".
	HeaderName
)

// Match is a list's entry that matched a sender.
type Match struct {
	List   string `json:"list"`
	Entry  string `json:"entry"` // as it stands in the list's normal form
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason,omitempty"` // the entry's comment
	Note   string `json:"note,omitempty"`   // the entry's private comment: for logs and tools only

	// Unconfirmed says that a filter alone decided: no list was asked whether it
	// has the entry, and File and Line are empty.
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// PublicReason allows the reason to be shown to clients.
	PublicReason bool `json:"-"`

	// Action is what this entry asks for; Accept from an allow list and from
	// a list that only observes.
	Action Action `json:"action"`
}

// IsZero reports that there is no match.
func (m Match) IsZero() bool { return m.List == "" }

// Verdict is what the lists say of one sender.
type Verdict struct {
	Action Action

	// Match is the entry that decided, an allow list's too; zero where
	// nothing matched.
	Match Match

	// ClearsMessage says that an overriding allow list knows the sender. For
	// the reverse-path it settles the whole message: header senders are not
	// looked up.
	ClearsMessage bool

	// Monitored holds the matches that would have decided and only observe.
	Monitored []Match
}

// ErrNoAnswer says that the lists could not be asked about a sender, which is
// nobody's fault but ours: the mail is neither let through nor turned away for
// good, the client is to try again.
var ErrNoAnswer = errors.New("the lists cannot be asked now")

// Judge answers for one state of the lists. It is safe for concurrent use.
type Judge interface {
	// Judge looks up a sender: an address as it was written, "" for the null
	// reverse-path. An error that wraps ErrNoAnswer says that the lists could not
	// be asked, any other that it is no address. The stage HeaderForm takes a
	// local part and an "@" as well.
	Judge(stage Stage, address string) (Verdict, error)

	// Generation numbers the state of the lists.
	Generation() uint64
}

// Checker hands out the Judge of the present lists. All senders of one message
// are judged by the same Judge.
type Checker interface {
	Judge() Judge
}

// Finding is the verdict on one identity of a message.
type Finding struct {
	Identity string // "envelope", or the field: "From"
	Address  string // "" for the null reverse-path
	Form     string // what the field has, where servers may make Address of it: "user%domain"
	Verdict  Verdict
	Err      error // the sender was not looked up: it is no address, or ErrNoAnswer
}

// NoAnswer reports that the lists could not be asked. The verdict is Defer then,
// of no list.
func (f Finding) NoAnswer() bool { return errors.Is(f.Err, ErrNoAnswer) }

// ask judges one sender.
func ask(j Judge, stage Stage, address string) (Verdict, error) {
	v, err := j.Judge(stage, address)
	if errors.Is(err, ErrNoAnswer) {
		v = Verdict{Action: Defer}
	}
	return v, err
}

// EnvelopeIdentity is the Identity of the reverse-path.
const EnvelopeIdentity = "envelope"

// Strictest returns the finding whose action decides: the strictest, the first
// of those alike. Where nothing asks for an action it is the first finding that
// an entry matched, else the zero Finding.
func Strictest(findings []Finding) Finding {
	var best Finding
	for _, f := range findings {
		switch {
		case f.Verdict.Action > best.Verdict.Action:
			best = f
		case best.Verdict.Action == Accept && best.Verdict.Match.IsZero() && !f.Verdict.Match.IsZero():
			best = f
		}
	}
	return best
}

// Decide is Strictest, for recipients that are all reachable by every sender
// (exempt) or not: towards those nothing stricter than Tag counts.
func Decide(findings []Finding, exempt bool) Finding {
	best := Strictest(findings)
	if !exempt || best.Verdict.Action <= Tag {
		return best
	}
	var mild []Finding
	for _, f := range findings {
		if f.Verdict.Action <= Tag {
			mild = append(mild, f)
		}
	}
	return Strictest(mild)
}
