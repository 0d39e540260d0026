package managed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
)

// Name names an entry of a list.
type Name struct {
	Entry string `json:"entry"`         // as a list has it: "!" begins an exception
	For   string `json:"for,omitempty"` // the recipients, in a list with per_recipient
}

// NewEntry is an entry to be added.
type NewEntry struct {
	Name
	Reason string    `json:"reason,omitempty"`
	Note   string    `json:"note,omitempty"`
	Until  time.Time `json:"until,omitzero"` // zero: it does not end
}

// Add adds entries to a list, each once: all of them or, after an error, none. An entry that
// the list has gets the new reason and end. The Result has an Outcome for each.
func (e *Editor) Add(ctx context.Context, by By, list string, entries []NewEntry, o Options) (Result, error) {
	l, err := e.list(list)
	if err != nil {
		return Result{}, err
	}
	lines, err := Lines(e.config(), l, entries)
	if err != nil {
		return Result{}, err
	}
	edit := e.edit(by, l, "add", o)
	var additions []listedit.Addition
	var outcomes []Outcome
	result, err := edit.do(ctx, func(old io.ReadSeeker, w io.Writer) error {
		var err error
		additions, err = listedit.Add(old, w, l.Options, lines)
		outcomes = edit.added(additions)
		return err
	})
	if err == nil {
		result.Entries, err = outcomes, cancelled(l, additions)
	}
	return result, err
}

// added returns the outcomes of additions, and sets the records of the changes.
func (e *edit) added(additions []listedit.Addition) (outcomes []Outcome) {
	e.record.Edits = []listedit.Edit{}
	for _, a := range additions {
		a.New.Line = a.Line
		outcome := Outcome{EntryInfo: e.info(a.New), What: a.What}
		if a.After != "" {
			outcome.Change = e.change(a.New, listfiles.Described(a.What, a.New), a.Before, []string{a.After})
		}
		if a.Was != nil {
			was := e.info(*a.Was)
			outcome.Was = &was
		}
		if a.What == listedit.Updated {
			outcome.Repeated = len(a.Extra)
		}
		if a.Opposite != nil {
			opposite := e.info(*a.Opposite)
			outcome.Opposite = &opposite
		}
		for _, c := range a.Covered {
			outcome.Covered = append(outcome.Covered, e.info(c))
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

func (e *edit) info(x listfile.Entry) listfiles.EntryInfo {
	return listfiles.NewEntryInfo(e.list.Name, e.list.Copy, x)
}

// change adds the change of an entry to the record, and returns its ID; "" if it is not made.
func (e *edit) change(x listfile.Entry, words string, before, after []string) (id string) {
	id = newID()
	info := e.info(x)
	e.record.Edits = append(e.record.Edits, listedit.Edit{ID: id, Entry: info.Entry, For: info.For, Before: before, After: after, Words: words})
	if e.options.DryRun {
		return ""
	}
	return id
}

// idLen is the length of the ID of a change.
const idLen = 16

func newID() string { return strings.ToLower(rand.Text()[:idLen]) }

// isID reports whether a text may be the ID of a change.
func isID(s string) bool {
	return len(s) == idLen && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// cancelled returns an error for each entry that an exception cancels.
func cancelled(l *listfiles.List, additions []listedit.Addition) error {
	var errs []error
	for _, a := range additions {
		if a.What == listedit.Refused {
			exception := a.New
			exception.Exception = true
			errs = append(errs, fmt.Errorf("%s: %w: %s in line %d; remove that first", listfiles.Written(a.New), ErrCancelled, listfiles.Written(exception), a.Line))
		}
	}
	if errs == nil {
		return nil
	}
	return fmt.Errorf("list %s: %w", l.Name, errors.Join(errs...))
}

// Lines returns the lines of new entries of a list. It refuses those that the list would not take.
func Lines(c *config.Config, l *listfiles.List, entries []NewEntry) ([]listfile.Line, error) {
	guarded := listfiles.NewProtection(c)
	lines := make([]listfile.Line, len(entries))
	var errs []error
	for i, n := range entries {
		text, _, err := n.parse(l)
		if err == nil && !n.Until.IsZero() && !n.Until.After(time.Now()) {
			err = fmt.Errorf("%s: the end %s is over", text, n.Until.UTC().Format(time.RFC3339))
		}
		var x listfile.Entry
		if err == nil {
			lines[i] = listfile.Line{Text: text, Reason: strings.TrimSpace(n.Reason), Note: strings.TrimSpace(n.Note), Until: listfile.UntilText(n.Until)}
			x, err = lines[i].Parse(l.Options)
		}
		if err != nil {
			errs = append(errs, refusal{ErrEntry, err})
		} else if err := guarded.Check(l, x); err != nil {
			errs = append(errs, refusal{ErrProtected, err})
		}
	}
	return lines, errors.Join(errs...)
}

// refusal is an error of a kind, which its text does not name.
type refusal struct {
	kind error
	error
}

// Unwrap returns the errors that it is.
func (r refusal) Unwrap() []error { return []error{r.kind, r.error} }

// parse returns the text of a line with the entry, and the entry. The two sides are parsed
// each by itself, so that neither can hold what belongs to the other.
func (n *Name) parse(l *listfiles.List) (text string, x listfile.Entry, err error) {
	options := l.Options
	options.PerRecipient = false
	text = strings.TrimSpace(n.Entry)
	if x, err = listfile.ParseEntry(text, options); err != nil {
		return text, x, err
	}
	if !l.PerRecipient {
		if n.For != "" {
			err = fmt.Errorf("the entries of list %s count for all recipients (per_recipient = false), not for %q alone", l.Name, n.For)
		}
		return text, x, err
	}
	recipient := strings.TrimSpace(n.For)
	if recipient == "" {
		return text, x, fmt.Errorf("%s: list %s needs the recipients for whom it counts, such as ann@example.net or @example.net", text, l.Name)
	}
	side, err := listfile.ParseEntry(recipient, options)
	if err != nil {
		return text, x, fmt.Errorf("the recipient: %w", err)
	}
	gap := " "
	if !l.Managed { // a file that people read
		gap = "  "
	}
	text = recipient + gap + text
	both, err := listfile.ParseEntry(text, l.Options)
	if err == nil && (both.For != side.Key || both.Key != x.Key || both.Exception != x.Exception || side.Exception) {
		err = fmt.Errorf("%q: a list would read this otherwise", text)
	}
	return text, both, err
}

// Remove removes entries with all their lines: all of them or, after an error, none. The
// Result has an Outcome for each.
func (e *Editor) Remove(ctx context.Context, by By, list string, entries []Name, o Options) (Result, error) {
	l, err := e.list(list)
	if err != nil {
		return Result{}, err
	}
	parsed := make([]listfile.Entry, len(entries))
	var errs []error
	for i, n := range entries {
		if _, parsed[i], err = n.parse(l); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", ErrEntry, err))
		}
	}
	if errs != nil {
		return Result{}, errors.Join(errs...)
	}
	edit := e.edit(by, l, "remove", o)
	var outcomes []Outcome
	result, err := edit.do(ctx, func(old io.ReadSeeker, w io.Writer) error {
		removals, err := listedit.Remove(old, w, l.Options, parsed)
		if err != nil && !errors.Is(err, listedit.ErrUnchanged) {
			return err
		}
		outcomes, err = edit.removed(removals)
		return err
	})
	result.Entries = outcomes
	return result, err
}

// removed returns the outcomes of removals, and sets the records of the changes. An entry that
// the list does not have is an error.
func (e *edit) removed(removals []listedit.Removal) (outcomes []Outcome, err error) {
	e.record.Edits = []listedit.Edit{}
	recorded := map[string]string{} // changes by entry: one may be named twice
	var errs []error
	for _, r := range removals {
		name := listfiles.Written(r.Entry)
		if len(r.Removed) == 0 {
			errs = append(errs, fmt.Errorf("%s: %w", name, ErrNotListed))
			continue
		}
		if recorded[name] == "" {
			recorded[name] = e.change(r.Entry, Removed+" "+name, r.Before, nil)
		}
		outcome := Outcome{EntryInfo: e.info(r.Removed[0]), What: Removed, Change: recorded[name], Repeated: len(r.Removed) - 1}
		for _, x := range r.Removed {
			outcome.Removed = append(outcome.Removed, e.info(x))
		}
		for _, c := range r.Covered {
			outcome.Covered = append(outcome.Covered, e.info(c))
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, errors.Join(errs...)
}
