package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"spamgate/blocklist/listfile"
	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
)

// This file says who may change which entry, for pages and API. The errors are for users.

// forbidden returns a failure of a request that the account may not make.
func forbidden(format string, args ...any) error {
	return failure{http.StatusForbidden, fmt.Sprintf(format, args...)}
}

// conflict returns a failure of a request that does not fit the state of things.
func conflict(format string, args ...any) error {
	return failure{http.StatusConflict, fmt.Sprintf(format, args...)}
}

// list returns a configured list.
func (c *Console) list(name string) (*config.List, error) {
	lists := c.Config().Lists
	for i := range lists {
		if lists[i].Name == name {
			return &lists[i], nil
		}
	}
	return nil, noList(name)
}

// parseEntry parses an entry as a managed list has it, with its recipients if the list is one
// by recipient.
func parseEntry(l *config.List, name managed.Name) (listfile.Entry, error) {
	files, _ := listfiles.New(*l) // a missing file does not matter here
	switch {
	case !l.Managed:
		return listfile.Entry{}, conflict("The list %s is not one that the gate keeps: edit its file, or what its server has.", l.Name)
	case l.PerRecipient && name.For == "":
		return listfile.Entry{}, invalid(fmt.Sprintf("The list %s is one by recipient: say for which recipient the entry counts.", l.Name))
	case !l.PerRecipient && name.For != "":
		return listfile.Entry{}, invalid(fmt.Sprintf("The entries of the list %s count for all recipients: choose a list by recipient.", l.Name))
	}
	e, err := listfile.ParseEntry(strings.TrimSpace(name.For+" "+name.Entry), files.Options)
	if err != nil {
		return e, invalid(sentence(err))
	}
	return e, nil
}

// mayAdd returns why an account may not add an entry to a list, or nil. Until is zero for an
// entry that counts for good.
func (c *Console) mayAdd(who accounts.Account, l *config.List, name managed.Name, until time.Time) error {
	e, err := parseEntry(l, name)
	if err != nil {
		return err
	}
	action := accounts.Block
	if l.Type == "allow" || e.Exception {
		action = accounts.LetIn
	}
	if err := mayChange(who, action, e.For); err != nil {
		return err
	}
	if err := who.CheckUntil(until, c.Now()); err != nil {
		return forbidden("%s", sentence(err))
	}
	return nil
}

// mayRemove returns why an account may not remove an entry from a list, or nil.
func (c *Console) mayRemove(who accounts.Account, l *config.List, name managed.Name) error {
	e, err := parseEntry(l, name)
	if err != nil {
		return err
	}
	return mayChange(who, accounts.EditEntries, e.For)
}

// mayUndo returns why an account may not undo a change, or nil. A change that it has made in a
// higher role is not its own any more: to undo the removal of an entry may bring one back that
// counts for good.
func mayUndo(who accounts.Account, change managed.Change) error {
	if role, err := accounts.ParseRole(change.Role); err == nil && role <= who.Role && own(who, change) && who.MaySome(accounts.UndoOwn) {
		return mayChange(who, accounts.UndoOwn, change.For)
	}
	return mayChange(who, accounts.EditEntries, change.For)
}

// own reports whether an account has made a change. Users of the machine may have names that
// accounts have, too.
func own(who accounts.Account, change managed.Change) bool {
	return change.By == who.Name && (change.Through == managed.ThroughConsole || change.Through == managed.ThroughAPI)
}

// seenBy returns which changes an account sees; nil: all.
func seenBy(who accounts.Account) func(*managed.Change) bool {
	if who.May(accounts.SeeChanges) {
		return nil
	}
	return func(c *managed.Change) bool { return c.For != "" && who.MayFor(accounts.SeeChanges, c.For) }
}

// by returns the account as the author of changes.
func by(who accounts.Account) managed.By {
	through := managed.ThroughConsole
	if who.Token {
		through = managed.ThroughAPI
	}
	return managed.Account(who.Name, who.Role.String(), through)
}

// add adds an entry to a managed list for the account, if that may. It does not change an entry
// of others that counts for longer than the account may add one.
func (x *exchange) add(l *config.List, e managed.NewEntry) (managed.Result, error) {
	if err := checkReason(e.Reason); err != nil {
		return managed.Result{}, err
	}
	if err := x.console.mayAdd(x.who, l, e.Name, e.Until); err != nil {
		return managed.Result{}, err
	}
	if _, limited := x.who.Longest(); limited {
		result, err := x.console.Editor.Add(x.r.Context(), by(x.who), l.Name, []managed.NewEntry{e}, managed.Options{DryRun: true})
		if err == nil {
			err = mayReplace(x.who, result, e.Until)
		}
		if err != nil {
			return result, err
		}
	}
	return x.console.Editor.Add(x.r.Context(), by(x.who), l.Name, []managed.NewEntry{e}, managed.Options{Why: e.Reason})
}

// mayReplace returns why an account may not add an entry in place of one that the list has, or nil.
// would is what adding it would do.
func mayReplace(who accounts.Account, result managed.Result, until time.Time) error {
	was := result.Entries[0].Was
	if _, limited := who.Longest(); !limited || was == nil {
		return nil
	}
	if ends, err := listfile.ParseUntil(was.Until); was.Until == "" || err == nil && ends > until.Unix() {
		return conflict("%s is in the list %s already, and counts longer.", was.Text(), result.List)
	}
	return nil
}

// undo undoes a change for the account, if that may.
func (x *exchange) undo(id, why string) (managed.Result, error) {
	if err := checkReason(why); err != nil {
		return managed.Result{}, err
	}
	change, err := x.console.Editor.Change(x.r.Context(), id)
	if err != nil {
		return managed.Result{}, err
	}
	if seen := seenBy(x.who); seen != nil && !seen(&change) {
		return managed.Result{}, managed.ErrNoChange // others' changes are none of its business
	}
	if err := mayUndo(x.who, change); err != nil {
		return managed.Result{}, err
	}
	return x.console.Editor.Undo(x.r.Context(), by(x.who), id, managed.Options{Why: why})
}

// maxReason bounds a reason, in characters.
const maxReason = 500

// checkReason returns an error for users if a reason is too long.
func checkReason(why string) error {
	if utf8.RuneCountInString(why) > maxReason {
		return invalid(fmt.Sprintf("The reason is too long: write at most %d characters.", maxReason))
	}
	return nil
}

// editFailure returns the status for an error of the Editor; ok is false for others.
func editFailure(err error) (f failure, ok bool) {
	for _, e := range []struct {
		err    error
		status int
	}{
		{managed.ErrNoList, http.StatusNotFound},
		{managed.ErrNotListed, http.StatusNotFound},
		{managed.ErrNoChange, http.StatusNotFound},
		{managed.ErrEntry, http.StatusBadRequest},
		{managed.ErrCursor, http.StatusBadRequest},
		{managed.ErrProtected, http.StatusUnprocessableEntity},
		{managed.ErrNotManaged, http.StatusConflict},
		{managed.ErrCancelled, http.StatusConflict},
		{managed.ErrConflict, http.StatusConflict},
		{managed.ErrUndone, http.StatusConflict},
		{managed.ErrMissing, http.StatusConflict},
		{managed.ErrTooLarge, http.StatusConflict},
		{managed.ErrNoFleet, http.StatusConflict},
		{fleet.ErrDiffers, http.StatusConflict},
		{fleet.ErrReadOnly, http.StatusForbidden},
		{fleet.ErrNotShared, http.StatusNotFound},
		{fleet.ErrBehind, http.StatusServiceUnavailable},
		{fleet.ErrClosed, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, e.err) {
			return failure{e.status, sentence(err)}, true
		}
	}
	if errors.Is(err, fleet.ErrOffline) {
		return failure{http.StatusServiceUnavailable, sentence(err) + " If only the answer was lost, the change counts when they are back: look before you make it again."}, true
	}
	return f, false
}

// mayChange returns why an account may not do something to entries for a recipient, or for
// everybody if the recipient is "".
func mayChange(who accounts.Account, action accounts.Action, recipient string) error {
	switch {
	case !who.MaySome(action):
		return forbidden("The role %s does not permit this: %s.", who.Role, action)
	case who.May(action) || recipient != "" && who.MayFor(action, recipient):
		return nil
	}
	return forbidden("Your account is for recipients at %s: choose a list by recipient, and one of these recipients.", strings.Join(who.Domains, ", "))
}

// mayTry returns why an account may not ask what would happen to mail for these recipients.
// An account that is bound to domains asks about its own recipients only.
func mayTry(who accounts.Account, recipients []string) error {
	if who.May(accounts.Try) {
		return nil
	}
	if len(recipients) == 0 {
		return invalid(fmt.Sprintf("Name a recipient at %s.", strings.Join(who.Domains, ", ")))
	}
	for _, r := range recipients {
		if err := mayChange(who, accounts.Try, r); err != nil {
			return err
		}
	}
	return nil
}

// sentence returns an error as a sentence.
func sentence(err error) string {
	s := err.Error()
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
