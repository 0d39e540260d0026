package managed

import (
	"context"
	"io"
	"os"

	"spamgate/internal/fleet"
	"spamgate/internal/listedit"
)

// Fleet shares lists between gates: a [fleet.Member].
type Fleet interface {
	// Retry calls edit, and calls it again after another gate has changed the list.
	Retry(ctx context.Context, list string, edit func() error) error

	// Publish makes an edit that of all gates, or refuses it. Done is called when the file is
	// replaced, or will not be.
	Publish(ctx context.Context, e fleet.Edit) (done func(placed bool), err error)
}

// Join makes the edits of lists with fleet = true those of a fleet. It is called before the
// first edit.
func (e *Editor) Join(f Fleet) { e.fleet = f }

// replaceFile replaces the list's file by what change writes, on all gates if it is shared.
func (e *edit) replaceFile(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error, o listedit.Options) (done listedit.Change, err error) {
	if !e.list.Fleet || o.DryRun {
		return listedit.Rewrite(ctx, e.list.Copy, change, o)
	}
	if e.Editor.fleet == nil {
		return done, ErrNoFleet
	}
	first := *e.record // each attempt sets it anew
	err = e.Editor.fleet.Retry(ctx, e.list.Name, func() (err error) {
		*e.record, e.accepted, e.kept = first, false, nil
		done, err = e.replaceShared(ctx, change, o)
		return err
	})
	return done, err
}

// replaceShared is an attempt of replaceFile.
func (e *edit) replaceShared(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error, o listedit.Options) (listedit.Change, error) {
	var published func(placed bool)
	o.Publish = func(ctx context.Context, c listedit.Change, old, content *os.File) (err error) {
		published, err = e.Editor.fleet.Publish(ctx, fleet.Edit{
			List: e.list.Name, Author: e.record.Person(), What: e.what(), Why: e.record.Why, Accepted: e.accepted,
			SHA256: c.SHA256, Size: c.Size, Old: old, New: content,
		})
		return err
	}
	done, err := listedit.Rewrite(ctx, e.list.Copy, change, o)
	if published != nil {
		published(err == nil)
	}
	return done, err
}

// what returns what the edit does, in the words of the audit log.
func (e *edit) what() string {
	switch n := len(e.record.Edits); n {
	case 0:
		return e.record.What
	case 1:
		return e.record.Edits[0].Words
	default:
		return e.record.Edits[0].Words + more(n-1)
	}
}
