package versions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"spamgate/blocklist/store"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// rollbackFiles makes the files of a list those of a version: all of them or, if something
// fails, none.
//
// It first writes every new content to the disk, each beside its file. Then it renames what is
// to be set aside, and puts the new contents into place. If one of these steps fails it undoes
// the others: it still has the old contents open.
type rollbackFiles struct {
	*rollback
	version store.VersionInfo
	undo    []func() error
}

// do makes the steps.
func (f *rollbackFiles) do(ctx context.Context, steps []rollbackStep) error {
	var contents, renames []rollbackStep
	for _, s := range steps {
		if s.What == stepWrite || s.What == stepCreate {
			contents = append(contents, s)
		} else {
			renames = append(renames, s)
		}
	}
	err := f.write(ctx, contents, func() error {
		if f.DryRun {
			return nil
		}
		f.Edit(f.target, "").AcceptSum(ctx, f.version.Sum)
		for _, s := range renames {
			if err := f.rename(ctx, s); err != nil {
				return err
			}
		}
		return context.Cause(ctx)
	})
	return f.changeBack(err)
}

// changeBack undoes what was done if err is not nil, and returns it.
func (f *rollbackFiles) changeBack(err error) error {
	if err == nil || len(f.undo) == 0 {
		return err
	}
	var errs []error
	for _, undo := range slices.Backward(f.undo) {
		errs = append(errs, undo())
	}
	if undone := errors.Join(errs...); undone != nil {
		name := term.ShellWord(f.target.Name)
		return fmt.Errorf("%w; and what was changed before could not be changed back: %w; run spamgate lists rollback %s --to %s to finish it", err, undone, name, f.version.ID)
	}
	return err
}

// write writes the contents of files, and calls then when all are on the disk and none is in its
// place.
func (f *rollbackFiles) write(ctx context.Context, steps []rollbackStep, then func() error) error {
	if len(steps) == 0 {
		return then()
	}
	s := steps[0]
	e := f.Edit(f.target, s.File)
	e.Create = s.What == stepCreate
	prepared := false
	e.Before = func() error {
		prepared = true
		if err := f.write(ctx, steps[1:], then); err != nil {
			return err
		}
		return f.keepOld(s)
	}
	_, err := e.Rewrite(ctx, func(_ io.ReadSeeker, w io.Writer) error {
		e.Record.What = "put version " + f.version.ID + " back"
		return f.extract(s, w)
	})
	if err == nil && !prepared { // a dry run
		return f.write(ctx, steps[1:], then)
	}
	return err
}

// extract copies the content that a file is to have.
func (f *rollbackFiles) extract(s rollbackStep, w io.Writer) error {
	return store.ExtractVersion(f.Config.State.Dir, f.target.Name, f.version.ID, func(path string, content io.Reader) error {
		if path != s.kept {
			return nil
		}
		_, err := io.Copy(w, content)
		return err
	})
}

// keepOld notes how to undo a change of a file that is about to be made. What another program
// has made of the file meanwhile stays.
func (f *rollbackFiles) keepOld(s rollbackStep) error {
	ours := func() bool {
		sum, err := f.fileSum(s.File)
		return err == nil && sum == s.sum
	}
	if s.What == stepCreate {
		f.undo = append(f.undo, func() error {
			if !ours() {
				return nil
			}
			return os.Remove(s.File)
		})
		return nil
	}
	old, err := setup.Opener(f.target.List).Open(s.File)
	if err != nil {
		return err
	}
	f.undo = append(f.undo, func() error {
		defer old.Close()
		if !ours() {
			return nil
		}
		_, err := listedit.Rewrite(context.Background(), s.File, func(_ io.ReadSeeker, w io.Writer) error {
			_, err := io.Copy(w, old)
			return err
		}, listedit.Options{StateDir: f.target.StateDir()})
		return err
	})
	return nil
}

// rename sets a file aside, or takes back one that was.
func (f *rollbackFiles) rename(ctx context.Context, s rollbackStep) error {
	from, to := s.File, s.Aside
	if s.What == stepRestore {
		from, to = to, from
	}
	if err := renameNew(from, to); err != nil {
		return err
	}
	f.undo = append(f.undo, func() error { return renameNew(to, from) })
	e := f.Edit(f.target, s.File)
	e.Record = listedit.NewRecord(e.Cmd.Name(), f.target.Name, s.File)
	e.Record.Why, e.Record.What = e.Why, fmt.Sprintf("renamed %s to %s to put version %s back", filepath.Base(from), filepath.Base(to), f.version.ID)
	return e.WriteRecord(ctx)
}

// renameNew renames a file to a name that nothing has.
func renameNew(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(to))
}
