package managed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"spamgate/blocklist/store"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
)

// Version is a version of a list that was live.
type Version struct {
	ID      string    `json:"version"`
	Time    time.Time `json:"time"` // when it went live
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`
	Sum     string    `json:"sum"`     // names its content: see store.Opener.ContentSum
	OnDisk  bool      `json:"on_disk"` // it is what the list has now
}

// Versions returns the kept versions of a managed list, the newest first.
func (e *Editor) Versions(list string) ([]Version, error) {
	l, err := e.list(list)
	current := ""
	switch {
	case err == nil:
		current, err = setup.Opener(l.List).ContentSum(l.Paths)
	case errors.Is(err, ErrMissing):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	kept, err := store.Versions(e.config().State.Dir, list)
	versions := []Version{}
	for _, v := range kept {
		versions = append(versions, Version{v.ID, v.Time, v.Entries, v.Bytes, v.Sum, v.Sum == current})
	}
	return versions, err
}

// ErrNoVersion says that a version of a list is not kept. Use errors.Is.
var ErrNoVersion = errors.New("no such version is kept")

// Rollback puts a version of a managed list back, also if its file is missing.
func (e *Editor) Rollback(ctx context.Context, by By, list, version string, o Options) (Result, error) {
	versions, err := e.Versions(list)
	if err != nil {
		return Result{}, err
	}
	found := false
	for _, v := range versions {
		found = found || v.ID == version
	}
	if !found {
		return Result{}, fmt.Errorf("list %s, version %q: %w", list, version, ErrNoVersion)
	}
	var content *atomicfile.File
	err = store.ExtractVersion(e.config().State.Dir, list, version, func(_ string, from io.Reader) (err error) {
		if content != nil {
			return errors.New("it has several files, as no managed list has")
		}
		content, err = e.spool(from, store.DefaultMaxBytes)
		return err
	})
	if content != nil {
		defer content.Discard()
	}
	if err != nil {
		return Result{}, err
	}
	if o.Command == "" {
		o.Command = "rollback"
	}
	return e.replace(ctx, by, list, Replacement{What: "put version " + version + " back", Content: content}, o, true)
}

// maxDrops bounds the changes that a rollback names.
const maxDrops = 1000

// Drops returns the changes of a list since a version was live, the newest first: a rollback to that
// takes them back. Those that were undone are not among them.
func Drops(ctx context.Context, changes func(context.Context, ChangesQuery) (ChangesPage, error), list string, live time.Time) ([]Change, error) {
	page, err := changes(ctx, ChangesQuery{List: list, Since: live.Add(1), Limit: maxDrops})
	if err != nil {
		return nil, err
	}
	since := map[string]bool{}
	for _, c := range page.Changes {
		since[c.ID], since[c.CommandID] = true, true
	}
	return slices.DeleteFunc(page.Changes, func(c Change) bool {
		return c.Undone != nil || c.Undoes != "" && since[c.Undoes] || slices.Contains([]string{"accept", "pin", "unpin", listedit.Failed}, c.Command)
	}), nil
}
