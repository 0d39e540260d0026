package lists

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
)

// editor edits managed lists: the running gate does, or this process.
type editor interface {
	Add(ctx context.Context, list string, entries []managed.NewEntry, o managed.Options) (managed.Result, error)
	Remove(ctx context.Context, list string, entries []managed.Name, o managed.Options) (managed.Result, error)
	Undo(ctx context.Context, change string, o managed.Options) (managed.Result, error)
	Replace(ctx context.Context, list string, r managed.Replacement, o managed.Options) (managed.Result, error)
	Rollback(ctx context.Context, list, version string, o managed.Options) (managed.Result, error)
	Changes(ctx context.Context, q managed.ChangesQuery) (managed.ChangesPage, error)
	Versions(ctx context.Context, list string) ([]managed.Version, error)
	Content(ctx context.Context, list string, w io.Writer) error
}

// editor returns the editor of the managed lists.
func (s *session) editor() editor {
	if client := s.gate().Client; client != nil {
		return client
	}
	return direct{managed.New(func() *config.Config { return s.config }, nil)}
}

// direct edits managed lists in this process, while no gate runs.
type direct struct{ *managed.Editor }

func (d direct) Add(ctx context.Context, list string, entries []managed.NewEntry, o managed.Options) (managed.Result, error) {
	return d.Editor.Add(ctx, managed.Self(), list, entries, o)
}

func (d direct) Remove(ctx context.Context, list string, entries []managed.Name, o managed.Options) (managed.Result, error) {
	return d.Editor.Remove(ctx, managed.Self(), list, entries, o)
}

func (d direct) Undo(ctx context.Context, change string, o managed.Options) (managed.Result, error) {
	return d.Editor.Undo(ctx, managed.Self(), change, o)
}

func (d direct) Replace(ctx context.Context, list string, r managed.Replacement, o managed.Options) (managed.Result, error) {
	return d.Editor.Replace(ctx, managed.Self(), list, r, o)
}

func (d direct) Rollback(ctx context.Context, list, version string, o managed.Options) (managed.Result, error) {
	return d.Editor.Rollback(ctx, managed.Self(), list, version, o)
}

func (d direct) Versions(_ context.Context, list string) ([]managed.Version, error) {
	return d.Editor.Versions(list)
}

func (d direct) Content(_ context.Context, list string, w io.Writer) error {
	content, err := d.Open(list)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(w, content)
	return err
}

// asOwner runs the command again as the owner of the state directory, if it edits a managed list
// and no gate runs that would. Ran says that the command has ended.
func (s *session) asOwner(managed bool) (ran bool, err error) {
	if !managed || s.gate().Client != nil {
		return false, nil
	}
	if os.Geteuid() == 0 && os.Getenv("SUDO_USER") == "" { // the audit log is to name root
		if err := os.Setenv("SUDO_USER", "root"); err != nil {
			return false, err
		}
		defer os.Unsetenv("SUDO_USER")
	}
	return local.AsOwner(s.cmd, s.config.State.Dir)
}

// readInstead copies the managed lists that this process may not read, if the running gate
// shows them, and returns a function that removes the copies.
func readInstead(ctx context.Context, c *config.Config) (remove func()) {
	remove = func() {}
	var hidden []*config.List
	for i := range c.Lists {
		l := &c.Lists[i]
		if !l.Managed {
			continue
		}
		if _, err := setup.Opener(*l).Stat(l.Copy); errors.Is(err, fs.ErrPermission) {
			hidden = append(hidden, l)
		}
	}
	if hidden == nil {
		return remove
	}
	gate := local.DialGate(c)
	defer gate.Close()
	dir, err := os.MkdirTemp("", "spamgate-lists-")
	if gate.Client == nil || err != nil {
		return remove // reading the lists says why not
	}
	for _, l := range hidden {
		copied := filepath.Join(dir, l.Name)
		file, err := os.OpenFile(copied, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			break
		}
		err = gate.Client.Content(ctx, l.Name, file)
		if errors.Join(err, file.Close()) == nil {
			l.Instead = copied
		}
	}
	return func() { _ = os.RemoveAll(dir) } // copies of what is in the lists
}

// options returns the options of an edit of a managed list.
func (e *edit) options() managed.Options {
	return managed.Options{DryRun: e.dryRun, Why: e.why, Command: e.cmd.Name()}
}

// addManaged adds entries to a managed list.
func (e *edit) addManaged(ctx context.Context, entries []listedit.NewEntry) (additions []listedit.Addition, changed bool, err error) {
	news := make([]managed.NewEntry, len(entries))
	parsed := make([]listfile.Entry, len(entries))
	for i, n := range entries {
		if parsed[i], err = n.Parse(e.list.Options); err != nil {
			return nil, false, err
		}
		news[i] = managed.NewEntry{Name: nameOf(parsed[i], e.list), Reason: n.Reason, Note: n.Note}
		if parsed[i].Until != 0 {
			news[i].Until = time.Unix(parsed[i].Until, 0)
		}
	}
	r, err := e.editor().Add(ctx, e.list.Name, news, e.options())
	if err != nil {
		return nil, false, err
	}
	for i, one := range r.Entries {
		additions = append(additions, addition(parsed[i], one))
	}
	return additions, r.Changed, nil
}

// nameOf returns an entry as a list is told it.
func nameOf(x listfile.Entry, l *listfiles.List) managed.Name {
	one := l.Options
	one.PerRecipient = false
	n := managed.Name{Entry: listedit.Text(listfile.Entry{Key: x.Key, Kind: x.Kind, Exception: x.Exception}, one)}
	if x.For != "" {
		n.For = listedit.Text(listfile.Entry{Key: x.For, Kind: listedit.KindOf(x.For)}, one)
	}
	return n
}

// addition returns what became of an entry, in the words of package listedit.
func addition(x listfile.Entry, one managed.Outcome) listedit.Addition {
	a := listedit.Addition{New: x, What: one.What, Line: one.Line, Extra: make([]int, one.Repeated), Covered: make([]listfile.Entry, len(one.Covered))}
	if was := one.Was; was != nil {
		a.Was = &listfile.Entry{Key: x.Key, Kind: x.Kind, For: x.For, Line: was.Line, Reason: was.Reason, Note: was.Note}
		if until, err := time.Parse(time.RFC3339, was.Until); err == nil {
			a.Was.Until = until.Unix()
		}
	}
	if one.Opposite != nil {
		a.Opposite = &listfile.Entry{Line: one.Opposite.Line}
	}
	return a
}

// removeManaged removes entries from a managed list, and returns the lines that they had.
func (e *edit) removeManaged(ctx context.Context, entries []listfile.Entry) (lines []int, err error) {
	names := make([]managed.Name, len(entries))
	for i, x := range entries {
		names[i] = nameOf(x, e.list)
	}
	r, err := e.editor().Remove(ctx, e.list.Name, names, e.options())
	for _, one := range r.Entries {
		for _, x := range one.Removed {
			lines = append(lines, x.Line)
		}
	}
	return lines, err
}

// maxConflicts is how often a change of a managed list is tried again because somebody else
// has edited the list meanwhile.
const maxConflicts = 20

// rewriteManaged replaces the content of a managed list by what change makes of it.
func (e *edit) rewriteManaged(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (done listedit.Change, err error) {
	for range maxConflicts {
		done, err = e.tryManaged(ctx, change)
		if !errors.Is(err, managed.ErrConflict) {
			break
		}
	}
	return done, err
}

func (e *edit) tryManaged(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (listedit.Change, error) {
	done := listedit.Change{File: e.file}
	editor := e.editor()
	old, err := unnamedFile()
	if err != nil {
		return done, err
	}
	defer old.Close()
	base := sha256.New()
	if err := editor.Content(ctx, e.list.Name, io.MultiWriter(old, base)); err != nil {
		return done, err
	}
	now, err := unnamedFile()
	if err != nil {
		return done, err
	}
	defer now.Close()
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return done, err
	}
	err = change(old, now)
	if errors.Is(err, listedit.ErrUnchanged) {
		return done, nil
	}
	if err == nil {
		_, err = now.Seek(0, io.SeekStart)
	}
	if err != nil {
		return done, err
	}
	what := e.record.What
	if e.described {
		what = "" // the gate finds the changed entries
	}
	r, err := editor.Replace(ctx, e.list.Name, managed.Replacement{Command: e.cmd.Name(), What: what, Base: hex.EncodeToString(base.Sum(nil)), Content: now}, e.options())
	done.Changed = r.Changed
	return done, err
}

// unnamedFile returns a temporary file that nobody else sees.
func unnamedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "spamgate-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("removing the name of a temporary file: %w", err)
	}
	return f, nil
}

// defaultList returns the list of a type to which entries go if none is named; "" if none is
// the default.
func defaultList(c *config.Config, kind string, perRecipient bool) string {
	i := slices.IndexFunc(c.Lists, func(l config.List) bool { return l.Default && l.Type == kind && l.PerRecipient == perRecipient })
	if i < 0 {
		return ""
	}
	return c.Lists[i].Name
}
