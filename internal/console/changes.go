package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/listedit"
	"spamgate/internal/managed"
)

var changesRoutes = []route{
	{"GET", "/changes", accounts.SeeChanges, (*exchange).changes},
	{"GET", "/undo/{change}", accounts.UndoOwn, (*exchange).askUndo},
	{"POST", "/undo/{change}", accounts.UndoOwn, (*exchange).postUndo},
}

// changesRows is how many changes a page has.
const changesRows = 50

// changesPage is what the page of the changes shows.
type changesPage struct {
	Done    *notice
	Fields  map[string]string // as typed, by the names in the URL
	Problem string
	Spans   []option
	Lists   []string

	Rows       []changeRow
	Bound      bool
	Incomplete bool

	Newest, Older string // paths
}

// changeRow is a change in the table.
type changeRow struct {
	managed.Change
	Words   string
	Undo    string // the path of the question; "" if the account may not undo it
	UndoAll string // the same for all that the command changed, if that is more
}

func (x *exchange) changes() error {
	p := changesPage{Fields: x.fields("list", "by", "entry", "since"), Spans: searchSpans, Bound: x.who.Domains != nil}
	for _, l := range x.console.Config().Lists {
		if x.who.May(accounts.SeeLists) || l.PerRecipient {
			p.Lists = append(p.Lists, l.Name)
		}
	}
	q := managed.ChangesQuery{List: p.Fields["list"], By: p.Fields["by"], Entry: p.Fields["entry"], Limit: changesRows, Before: x.r.URL.Query().Get("before")}
	q.Want = seenBy(x.who)
	var err error
	if since := p.Fields["since"]; since != "" {
		q.Since, err = parsePast(since, x.console.Now())
	}
	if err == nil {
		err = x.findChanges(&p, q)
	}
	var f failure
	switch {
	case errors.As(err, &f):
		p.Problem, x.status = f.text, f.status
	case errors.Is(err, managed.ErrEntry):
		p.Problem, x.status = sentence(err), http.StatusBadRequest
	case err != nil:
		return err
	}
	if p.Done, err = x.notice(); err != nil {
		return err
	}
	return x.render("changes", view{Title: "Changes", Nav: "/changes", Data: p})
}

// findChanges fills in the rows.
func (x *exchange) findChanges(p *changesPage, q managed.ChangesQuery) error {
	found, err := x.console.Editor.Changes(x.r.Context(), q)
	if err != nil {
		return err
	}
	p.Incomplete = found.Incomplete
	for _, c := range found.Changes {
		row := changeRow{Change: c, Words: changeWords(&c)}
		if x.undoable(&c) == nil {
			all := c
			if all.ID, all.For = c.CommandID, ""; all.ID != "" && all.ID != c.ID && x.undoable(&all) == nil {
				row.UndoAll = "/undo/" + url.PathEscape(all.ID)
			}
			if c.ID != "" {
				row.Undo = "/undo/" + url.PathEscape(c.ID)
			}
		}
		p.Rows = append(p.Rows, row)
	}
	v := fieldValues(p.Fields)
	if q.Before != "" {
		p.Newest = mailPath("/changes", v)
	}
	if found.Next != "" {
		v.Set("before", found.Next)
		p.Older = mailPath("/changes", v)
	}
	return nil
}

// changeWords says what a change did: the entry before the recipient, and times as in all pages.
func changeWords(c *managed.Change) string {
	what := c.What
	if c.For != "" {
		what = strings.Replace(what, c.For+" "+c.Entry, c.Entry+" for "+c.For, 1)
	}
	return localTimes(what)
}

// undoable returns why the account cannot undo a change, as far as the change itself tells.
func (x *exchange) undoable(c *managed.Change) error {
	switch l, err := x.console.list(c.List); {
	case c.ID == "" && c.CommandID == "":
		return conflict("Changes of this kind cannot be undone here.")
	case c.Undone != nil && c.Undone.ID != "":
		return conflict("The change has been undone already, by %s.", c.Undone.By)
	case c.Undone != nil:
		return conflict("The change was not made.")
	case err != nil || !l.Managed:
		return conflict("The list %s is no longer managed by the gate.", c.List)
	}
	return mayUndo(x.who, *c)
}

// undoPage is what the question before an undo shows.
type undoPage struct {
	Change  managed.Change
	Words   string
	Back    string
	Problem string // why it cannot be undone; the rest of the page is as before

	Would managed.Result // of a command: what undoing it would do
	Allow bool           // the list lets senders in
}

// wantedChange returns the change that the path names.
func (x *exchange) wantedChange() (*managed.Change, error) {
	c, err := x.console.Editor.Change(x.r.Context(), x.r.PathValue("change"))
	if seen := seenBy(x.who); err == nil && seen != nil && !seen(&c) {
		err = managed.ErrNoChange // others' changes are none of its business
	}
	return &c, err
}

func (x *exchange) askUndo() error {
	c, err := x.wantedChange()
	if err != nil {
		return err
	}
	p := undoPage{Change: *c, Words: changeWords(c), Back: undoneAt(x.query("back"))}
	if l, err := x.console.list(c.List); err == nil {
		p.Allow = l.Type == "allow"
	}
	err = x.undoable(c)
	if err == nil {
		p.Would, err = x.console.Editor.Undo(x.r.Context(), by(x.who), c.ID, managed.Options{DryRun: true})
	}
	if err != nil {
		p.Problem = x.asFailure(err).text
	}
	return x.render("undo", view{Title: "Undo a change", Nav: "/changes", Data: p})
}

func (x *exchange) postUndo() error {
	result, err := x.undo(x.r.PathValue("change"), x.form("why"))
	if err != nil {
		return err
	}
	return x.redirect(withNotice(undoneAt(x.form("back")), result))
}

// undoneAt returns the page that follows an undo: where the user came from, or the changes.
func undoneAt(back string) string {
	if back = localPath(back); back != "/" {
		return back
	}
	return "/changes"
}

// notice says on a page what was just changed. The URL names the change, and the audit log tells
// the rest.
type notice struct {
	Change managed.Change
	Words  string
	LetIn  bool   // the change lets senders in
	Undo   string // the path that undoes it; "" if the account may not
	Back   string // the path of the page without the notice

	Unchanged string // not a change: the list that has the added entry already, as it is
}

// noticeAge is how long a page says that a change was made.
const noticeAge = time.Hour

// noticeTime bounds the search for the change.
const noticeTime = 200 * time.Millisecond

// notice returns the notice that the URL asks for; nil for none.
func (x *exchange) notice() (*notice, error) {
	if l, err := x.console.list(x.query("unchanged")); err == nil && l.Managed {
		return &notice{Unchanged: l.Name}, nil
	}
	id := x.query("done")
	if id == "" || x.console.Editor == nil {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(x.r.Context(), noticeTime)
	defer stop()
	change, err := x.console.Editor.Change(ctx, id)
	switch {
	case errors.Is(err, managed.ErrNoChange), ctx.Err() != nil:
		return nil, nil // the URL may be old, or made up
	case err != nil:
		return nil, err
	}
	if !own(x.who, change) || x.console.Now().Sub(change.Time) > noticeAge {
		return nil, nil // a link from elsewhere puts no words on a page
	}
	n := &notice{Change: change, Words: changeWords(&change), LetIn: x.letsIn(&change), Back: withoutNotice(x.r.URL)}
	if change.Undone == nil && mayUndo(x.who, change) == nil {
		n.Undo = "/undo/" + url.PathEscape(change.ID)
	}
	return n, nil
}

// letsIn reports whether a change lets senders in that were stopped before.
func (x *exchange) letsIn(c *managed.Change) bool {
	l, err := x.console.list(c.List)
	if err != nil || c.Undoes != "" {
		return false
	}
	if l.Type == "allow" {
		return len(c.After) > 0
	}
	return len(c.After) == 0
}

// withNotice returns the path of a page that says what a result has changed.
func withNotice(path string, r managed.Result) string {
	u, err := url.Parse(path)
	if err != nil || len(r.Entries) == 0 {
		return path
	}
	q := queryWithoutNotice(u)
	switch e := r.Entries[0]; {
	case r.Undone > 0:
		q.Set("done", r.Change)
	case e.Change != "":
		q.Set("done", e.Change)
	case e.What == listedit.Present:
		q.Set("unchanged", r.List)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// withoutNotice returns the path and query of a page without a notice.
func withoutNotice(u *url.URL) string {
	return (&url.URL{Path: u.Path, RawQuery: queryWithoutNotice(u).Encode()}).String()
}

func queryWithoutNotice(u *url.URL) url.Values {
	q := u.Query()
	q.Del("done")
	q.Del("unchanged")
	return q
}
