package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what happens to a message because of one sender. The greater
// action is the stricter one, except for Monitor.
type Action uint8

// The actions.
const (
	Accept  Action = iota // take the mail; the only action of allow lists
	Tag                   // take it, marked with a header field
	Discard               // reply 250 and drop it
	Defer                 // refuse it for now (4xx)
	Reject                // refuse it for good (5xx)

	// Monitor looks the sender up and logs the match. A list may ask for it; it
	// is never the action of a Match or of a Verdict.
	Monitor
)

// actions says of each action what sessions, doors, commands and pages ask about it, so that
// they need not know it by name. The first one whose reply is not 0 is not delivered, and nor
// is any stricter one: packages compare with that, too.
var actions = [...]struct {
	name  string
	reply int    // class of the reply that ends the message, after RCPT or DATA; 0: it goes on
	code  uint16 // last byte of the address in DNS (docs/dns-server.md); 0: not listed

	done, does string // for people: the message is "refused", the list "refuses"
}{
	Accept:  {"accept", 0, 0, "accepted", "lets in"},
	Tag:     {"tag", 0, 4, "tagged", "tags"},
	Discard: {"discard", 2, 5, "discarded", "discards"},
	Defer:   {"defer", 4, 3, "deferred", "defers"},
	Reject:  {"reject", 5, 2, "refused", "refuses"},
	Monitor: {"monitor", 0, 0, "only logged", "only logs"},
}

// Actions returns the names of the actions in their order, of which Monitor is the last.
func Actions() []string {
	names := make([]string, len(actions))
	for i := range actions {
		names[i] = actions[i].name
	}
	return names
}

// ActionOf returns the action of a name that was checked; Accept for another text.
func ActionOf(name string) (a Action) {
	_ = a.UnmarshalText([]byte(name))
	return a
}

// Refuses reports whether the client's reply refuses the message.
func (a Action) Refuses() bool { return actions[a].reply >= 4 }

// Drops reports whether the client's reply accepts a message that nobody receives.
func (a Action) Drops() bool { return actions[a].reply == 2 }

// Code returns the last byte of the address that says the action in DNS; 0: not listed.
func (a Action) Code() uint16 { return actions[a].code }

// Done says what became of a message: "refused".
func (a Action) Done() string { return actions[a].done }

// Does says what a list does with a message: "refuses".
func (a Action) Does() string { return actions[a].does }

// String returns the action's name, as in configurations: "reject".
func (a Action) String() string {
	if int(a) < len(actions) {
		return actions[a].name
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// MarshalText returns the action's name.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses an action's name. The error for another text lists the
// names.
func (a *Action) UnmarshalText(text []byte) error {
	i := slices.Index(Actions(), string(text))
	if i < 0 {
		return fmt.Errorf("unknown action %q: use %s", text, strings.Join(Actions(), ", "))
	}
	*a = Action(i)
	return nil
}
