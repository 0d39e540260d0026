package session

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

	"spamgate/internal/admin"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
)

// Editor returns who edits the managed lists: the running gate, or this process.
func (s *Session) Editor() *admin.Client {
	if client := s.Gate().Client; client != nil {
		return client
	}
	return admin.Direct(managed.New(func() *config.Config { return s.Config }, nil))
}

// AsOwner runs the command again as the owner of the state directory, if it edits a managed list
// and no gate runs that would. Ran says that the command has ended.
func (s *Session) AsOwner(managed bool) (ran bool, err error) {
	if !managed || s.Gate().Client != nil {
		return false, nil
	}
	if os.Geteuid() == 0 && os.Getenv("SUDO_USER") == "" { // the audit log is to name root
		if err := os.Setenv("SUDO_USER", "root"); err != nil {
			return false, err
		}
		defer os.Unsetenv("SUDO_USER")
	}
	return local.AsOwner(s.Cmd, s.Config.State.Dir)
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

// Options returns the options of an edit of a managed list.
func (e *Edit) Options() managed.Options {
	return managed.Options{DryRun: e.DryRun, Why: e.Why, Command: e.Cmd.Name()}
}

// maxConflicts is how often a change of a managed list is tried again because somebody else
// has edited the list meanwhile.
const maxConflicts = 20

// rewriteManaged replaces the content of a managed list by what change makes of it.
func (e *Edit) rewriteManaged(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (done listedit.Change, err error) {
	for range maxConflicts {
		done, err = e.tryManaged(ctx, change)
		if !errors.Is(err, managed.ErrConflict) {
			break
		}
	}
	return done, err
}

func (e *Edit) tryManaged(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (listedit.Change, error) {
	done := listedit.Change{File: e.File}
	editor := e.Editor()
	old, err := UnnamedFile()
	if err != nil {
		return done, err
	}
	defer old.Close()
	base := sha256.New()
	if err := editor.Content(ctx, e.List.Name, io.MultiWriter(old, base)); err != nil {
		return done, err
	}
	file, err := UnnamedFile()
	if err != nil {
		return done, err
	}
	defer file.Close()
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return done, err
	}
	err = change(old, file)
	if errors.Is(err, listedit.ErrUnchanged) {
		return done, nil
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return done, err
	}
	what := e.Record.What
	if e.described {
		what = "" // the gate finds the changed entries
	}
	r, err := admin.Call(ctx, editor, admin.OpReplace, admin.ReplaceRequest{
		Replacement: managed.Replacement{Command: e.Cmd.Name(), What: what, Base: hex.EncodeToString(base.Sum(nil)), Content: file}, Options: e.Options(),
	}, e.List.Name)
	done.Changed = r.Changed
	return done, err
}

// UnnamedFile returns a temporary file that nobody else sees.
func UnnamedFile() (*os.File, error) {
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
