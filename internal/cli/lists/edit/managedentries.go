package edit

import (
	"context"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
)

// entryEdit is a change of some entries of a list.
type entryEdit struct{ *session.Edit }

// addManaged adds entries to a managed list.
func (e *entryEdit) addManaged(ctx context.Context, entries []managed.NewEntry, lines []listfile.Line) (additions []listedit.Addition, changed bool, err error) {
	r, err := admin.Call(ctx, e.Editor(), admin.OpAdd, admin.AddRequest{Entries: entries, Options: e.Options()}, e.List.Name)
	if err != nil {
		return nil, false, err
	}
	for i, entry := range r.Entries {
		parsed, err := lines[i].Parse(e.List.Options)
		if err != nil {
			return nil, false, err
		}
		additions = append(additions, addition(parsed, entry))
	}
	return additions, r.Changed, nil
}

// nameOf returns an entry as a list is told it.
func nameOf(x listfile.Entry, l *listfiles.List) managed.Name {
	options := l.Options
	options.PerRecipient = false
	n := managed.Name{Entry: listfile.Text(listfile.Entry{Key: x.Key, Kind: x.Kind, Exception: x.Exception}, options)}
	if x.For != "" {
		n.For = listfile.Text(listfile.Entry{Key: x.For, Kind: listfile.KindOf(x.For)}, options)
	}
	return n
}

// addition returns what became of an entry, in the words of package listedit.
func addition(x listfile.Entry, entry managed.Outcome) listedit.Addition {
	a := listedit.Addition{New: x, What: entry.What, Line: entry.Line, Extra: make([]int, entry.Repeated), Covered: make([]listfile.Entry, len(entry.Covered))}
	if was := entry.Was; was != nil {
		a.Was = &listfile.Entry{Key: x.Key, Kind: x.Kind, For: x.For, Line: was.Line, Reason: was.Reason, Note: was.Note}
		if until, err := time.Parse(time.RFC3339, was.Until); err == nil {
			a.Was.Until = until.Unix()
		}
	}
	if entry.Opposite != nil {
		a.Opposite = &listfile.Entry{Line: entry.Opposite.Line}
	}
	return a
}

// removeManaged removes entries from a managed list.
func (e *entryEdit) removeManaged(ctx context.Context, entries []listfile.Entry) error {
	names := make([]managed.Name, len(entries))
	for i, x := range entries {
		names[i] = nameOf(x, e.List)
	}
	_, err := admin.Call(ctx, e.Editor(), admin.OpRemove, admin.RemoveRequest{Entries: names, Options: e.Options()}, e.List.Name)
	return err
}
