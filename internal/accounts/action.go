package accounts

import (
	"fmt"
	"time"
)

// Action is something that an account may do.
type Action int

const (
	_           Action = iota // the zero Action is none, and nobody may do it
	Enter                     // log in, end one's own sessions, change one's own password
	SeeMail                   // decisions about messages, and the whole story of one
	Try                       // what would happen to a sender or a message
	SeeChanges                // who changed which entry
	SeeTotals                 // numbers of decisions over time, by list and reason; rankings
	SeeLists                  // lists: entries, versions, what is unused or overlaps
	SeeHealth                 // health of the gate, its next hops and lists
	SeeSettings               // the effective configuration, without secrets
	LetIn                     // add an allow entry, or an exception to a block list, until a time that CheckUntil accepts
	UndoOwn                   // undo a change of one's own
	Block                     // add a block entry
	EditEntries               // add, change and remove any entry of a managed list; undo changes of others
	AcceptHeld                // accept or refuse an update that is held
	Rollback                  // restore an earlier version of a list, import a whole one
	Pin                       // pin a list to a version, or unpin it
	EndSessions               // see and end sessions of others
	actions                   // the first that is none
)

// Actions returns all actions, in the order of docs/console.md.
func Actions() []Action {
	var all []Action
	for x := Enter; x < actions; x++ {
		all = append(all, x)
	}
	return all
}

// rules says for each action which role may do it at least, and whether an account that
// is bound to domains may, for its recipients.
var rules = [actions]struct {
	name     string
	least    Role
	forBound bool
}{
	Enter:       {"log in", Viewer, true},
	SeeMail:     {"see mail", Viewer, true},
	Try:         {"try", Viewer, true},
	SeeChanges:  {"see changes", Viewer, true},
	SeeTotals:   {"see totals", Viewer, false},
	SeeLists:    {"see lists", Viewer, false},
	SeeHealth:   {"see health", Viewer, false},
	SeeSettings: {"see settings", Viewer, false},
	LetIn:       {"let in", Helpdesk, true},
	UndoOwn:     {"undo own changes", Helpdesk, true},
	Block:       {"block", Editor, true},
	EditEntries: {"edit entries", Editor, true},
	AcceptHeld:  {"accept held updates", Admin, false},
	Rollback:    {"roll back", Admin, false},
	Pin:         {"pin", Admin, false},
	EndSessions: {"end sessions of others", Admin, false},
}

// String returns the name of the action.
func (x Action) String() string {
	if !x.known() {
		return fmt.Sprintf("Action(%d)", int(x))
	}
	return rules[x].name
}

func (x Action) known() bool { return x >= Enter && x < actions }

// May reports whether the account may do x without restriction. An account that is bound
// to domains may do nothing so: ask MayFor about a recipient.
func (a Account) May(x Action) bool {
	return a.MaySome(x) && a.Domains == nil
}

// MayFor reports whether the account may do x for a recipient: an address, or "@domain"
// for all recipients at a domain. This is how a list by recipient names them. Without a
// recipient it is May: the entry counts for everybody.
func (a Account) MayFor(x Action, recipient string) bool {
	return a.May(x) || a.MaySome(x) && a.MaySee(recipient)
}

// MaySome reports whether the account may do x at all, if only for its own recipients. It
// decides whether a page is offered. What the page shows and does needs May or MayFor.
func (a Account) MaySome(x Action) bool {
	return x.known() && a.Role >= rules[x].least && a.Role <= Admin && (a.Domains == nil || rules[x].forBound)
}

// helpdeskLimit bounds how long a helpdesk's entry counts. The minute is for clocks that differ.
const (
	helpdeskLimit = 24 * time.Hour
	clockSkew     = time.Minute
)

// Longest returns for how long an entry of this account may count at most; limited is
// false if it may count for good.
func (a Account) Longest() (d time.Duration, limited bool) {
	if a.Role < Editor {
		return helpdeskLimit, true
	}
	return 0, false
}

// CheckUntil returns an error if an entry that the account adds now may not count until
// then. The zero time means for good.
func (a Account) CheckUntil(until, now time.Time) error {
	longest, limited := a.Longest()
	if limited && (until.IsZero() || until.Sub(now) > longest+clockSkew) {
		return fmt.Errorf("the role %s lets in for at most %d hours: choose an earlier end, or ask an editor", a.Role, int(longest.Hours()))
	}
	return nil
}
