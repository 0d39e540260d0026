package managed

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
)

// Change is a change that the audit log records, of any list.
type Change struct {
	Time    time.Time `json:"time"`
	By      string    `json:"by"`
	Role    string    `json:"role,omitempty"`    // of an account
	Through string    `json:"through,omitempty"` // ThroughConsole ...; "" in old records
	Command string    `json:"command"`           // "add", "remove", "undo", "accept" ...
	List    string    `json:"list,omitempty"`
	File    string    `json:"file,omitempty"`
	What    string    `json:"what"`
	Why     string    `json:"why,omitempty"`

	// Of the change of one entry of a managed list: the ID for Undo, the entry in normal
	// form, and its lines before and after. Undoes is the change that this one undoes.
	ID     string   `json:"id,omitempty"`
	Entry  string   `json:"entry,omitempty"`
	For    string   `json:"for,omitempty"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
	Undoes string   `json:"undoes,omitempty"`

	// CommandID is the ID with which Undo takes back all that the same command changed.
	CommandID string `json:"command_id,omitempty"`

	Undone *Undone `json:"undone,omitempty"` // nil: it is not

	Cursor string `json:"cursor"` // continues after this change
}

// Undone says which change has undone another. Without an ID, the other was not made.
type Undone struct {
	ID   string    `json:"id,omitempty"`
	By   string    `json:"by"`
	Time time.Time `json:"time"`
}

// ChangesQuery says which changes are wanted. Empty fields match all.
type ChangesQuery struct {
	List   string
	Entry  string // the entry or its exception, in any spelling; or "RECIPIENT ENTRY"
	By     string // an account, a user with or before sudo, or a number
	Since  time.Time
	Want   func(*Change) bool // nil: all
	Limit  int                // 0: 100
	Before string             // a Cursor
}

// ChangesPage is an answer to a ChangesQuery: the newest changes first.
type ChangesPage struct {
	Changes []Change `json:"changes"`
	Next    string   `json:"next,omitempty"` // the Cursor with which it continues; "": there are no more

	// Incomplete says that older logs were not read: they are too long, or cannot be read.
	Incomplete bool `json:"incomplete,omitempty"`
}

// defaultLimit is how many changes a page has.
const defaultLimit = 100

// Changes returns changes of all lists, also those that commands made of other lists than
// managed ones. The error is ErrEntry, ErrCursor, or about the logs.
func (e *Editor) Changes(ctx context.Context, q ChangesQuery) (ChangesPage, error) {
	page := ChangesPage{Changes: []Change{}}
	if q.Before != "" && !isID(q.Before) && !timeCursor.MatchString(q.Before) {
		return page, ErrCursor
	}
	var entry Mentions
	if q.Entry != "" {
		var err error
		if entry, err = MentionsOf(q.Entry); err != nil {
			return page, fmt.Errorf("%w: %w", ErrEntry, err)
		}
	}
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	undone := map[string]*Undone{}
	place := cursor{}
	passed := q.Before == ""
	complete, err := e.log().Newest(ctx, listedit.Search{Since: q.Since, Found: func(r listedit.Record) bool {
		note(undone, &r)
		position := place.of(&r)
		if !passed {
			passed = position == q.Before
			return true
		}
		c := newChange(r, undone)
		c.Cursor = position
		if !q.Wants(&r) || !entry.In(&r) || q.Want != nil && !q.Want(c) {
			return true
		}
		if len(page.Changes) == q.Limit {
			page.Next = page.Changes[len(page.Changes)-1].Cursor
			return false
		}
		page.Changes = append(page.Changes, *c)
		return true
	}})
	page.Incomplete = !complete
	return page, err
}

// note notes which change a record undoes. The records come from the newest to the oldest, so
// that a record comes after the one that says that it was not made.
func note(undone map[string]*Undone, r *listedit.Record) {
	change := undone[name(r)]
	notMade := change != nil && change.ID == ""
	if r.Undoes != "" && undone[r.Undoes] == nil && !notMade {
		undone[r.Undoes] = &Undone{ID: name(r), By: r.Person(), Time: r.Time}
		if r.ID != "" && r.Entry == "" { // it has no records of the entries
			undone[r.Undoes+allEntries] = undone[r.Undoes]
		}
	}
}

// allEntries follows the ID of a command all of whose entries a later one has undone.
const allEntries = " all"

func newChange(r listedit.Record, undone map[string]*Undone) *Change {
	by := undone[name(&r)]
	if by == nil {
		by = undone[r.CommandID+allEntries]
	}
	return &Change{
		Time: r.Time, By: r.Person(), Role: r.Role, Through: r.Through, Command: r.Command, List: r.List, File: r.File, What: r.What, Why: r.Why,
		ID: r.ID, Entry: r.Entry, For: r.For, Before: r.Before, After: r.After, Undoes: r.Undoes, CommandID: r.CommandID, Undone: by,
	}
}

// timeCursor matches the Cursor of a record without an ID.
var timeCursor = regexp.MustCompile(`^-?[0-9a-z]+\.[0-9]+$`)

// cursor numbers the records of the same time.
type cursor struct {
	time time.Time
	n    int
}

// of returns the place of a record: its ID, or its time.
func (c *cursor) of(r *listedit.Record) string {
	if r.Time.Equal(c.time) {
		c.n++
	} else {
		*c = cursor{time: r.Time}
	}
	if r.ID != "" {
		return r.ID
	}
	return strconv.FormatInt(r.Time.UnixNano(), 36) + "." + strconv.Itoa(c.n)
}

// Wants reports whether a record is wanted, apart from its entry.
func (q *ChangesQuery) Wants(r *listedit.Record) bool {
	return (q.List == "" || r.List == q.List) && !r.Time.Before(q.Since) && (q.By == "" || MadeBy(r, q.By))
}

// MadeBy reports whether an account or a user of this name, or with this number, made a change.
func MadeBy(r *listedit.Record, who string) bool {
	return who == r.By || who == r.SudoUser || r.By == "" && (who == r.User || who == strconv.Itoa(r.UID))
}

// Mentions are the forms of an entry in the audit log. The zero value means any entry.
type Mentions []string

// MentionsOf returns the forms of an entry, which may have two sides.
func MentionsOf(text string) (Mentions, error) {
	e, err := listfile.ParseEntry(text, listfile.Options{AllowPublicSuffix: true})
	if err != nil && strings.ContainsAny(strings.TrimSpace(text), " \t") {
		if two, sidesErr := listfile.ParseEntry(text, listfile.Options{PerRecipient: true}); sidesErr == nil {
			e, err = two, nil
		}
	}
	if err != nil {
		return nil, err
	}
	forms := func(e listfile.Entry) []string {
		opposite := e
		opposite.Exception = !e.Exception
		return []string{listfiles.Written(e), listfiles.Written(opposite)}
	}
	m := forms(e)
	if e.Kind == sender.KindDomain { // in a list with match = "exact"
		e.Key = "@" + e.Key
		m = append(m, forms(e)...)
	}
	return m, nil
}

// In reports whether a record mentions the entry.
func (m Mentions) In(r *listedit.Record) bool {
	if m == nil {
		return true
	}
	words := " " + strings.Join(strings.FieldsFunc(r.What, func(c rune) bool { return c == ' ' || c == ',' }), " ") + " "
	return slices.ContainsFunc(m, func(entry string) bool { return strings.Contains(words, " "+entry+" ") })
}
