package console

import (
	"context"
	"errors"
	"net/url"
	"time"

	"spamgate/internal/listedit"
	"spamgate/internal/managed"
)

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
