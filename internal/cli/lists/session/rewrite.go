package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// Edit is one change of a list's file.
type Edit struct {
	*Session
	List   *listfiles.List
	File   string
	Why    string
	DryRun bool
	Create bool // the file, if it is not there
	Record *listedit.Record

	described bool // the record has a text for each entry

	current bool // the list's index is of the file as it was before the change

	sum func() (string, error) // of the list's content before the change; known asks for it

	// before is called when the new content is on the disk but not yet in its place;
	// nil: accept is.
	Before func() error
}

// Edit returns a change of one of a list's files, which the command is to make.
func (s *Session) Edit(list *listfiles.List, file string) *Edit {
	return &Edit{Session: s, List: list, File: file, Why: s.Reason, DryRun: s.DryRun}
}

// Rewrite changes the file with change, which describes the change in e.record.What.
func (e *Edit) Rewrite(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (listedit.Change, error) {
	e.Record = listedit.NewRecord(e.Cmd.Name(), e.List.Name, e.File)
	e.Record.Why = e.Why
	if e.List.Managed {
		return e.rewriteManaged(ctx, change)
	}
	o := listedit.Options{
		DryRun:   e.DryRun,
		Create:   e.Create,
		StateDir: e.List.StateDir(),
		MaxBytes: cmp.Or(e.List.MaxBytes, store.DefaultMaxBytes),
		Waiting: func() {
			fmt.Fprintf(e.Stderr, "spamgate: waiting for another change of %s to end\n", term.ShortPath(e.File))
		},
		Before: func(c listedit.Change) error {
			if e.Before != nil {
				return e.Before()
			}
			return e.accept(ctx, c)
		},
		Record: e.Record,
	}
	throughGate := false
	if !e.DryRun {
		var err error
		if o.Log, throughGate, err = e.auditLog(); err != nil {
			return listedit.Change{}, fmt.Errorf("%s is not changed: %w", e.File, err)
		}
	}
	bar := term.NewFileProgress(e.Stderr, e.File, e.File) // it is read twice
	defer bar.Finish()
	result, err := listedit.Rewrite(ctx, e.File, func(old io.ReadSeeker, w io.Writer) error {
		in := e.indexed(old, bar)
		if !e.current && !e.DryRun && e.Gate().Client == nil {
			e.sum = e.contentSum()
		}
		return change(in, w)
	}, o)
	bar.Finish()
	if err == nil && throughGate && result.Changed {
		if err = e.auditByGate(ctx); err != nil {
			err = fmt.Errorf("%s is changed, but that is not recorded: %w", term.ShortPath(e.File), err)
		}
	}
	if err != nil {
		return result, listfiles.WithAuthority(err, listfiles.WhoOwns)
	}
	return result, nil
}

// contentSum begins to compute the sum of what the list has on disk, which takes as long as
// the change itself, and returns a function that waits for it.
func (e *Edit) contentSum() func() (string, error) {
	done := make(chan struct{})
	var sum string
	var err error
	go func() {
		defer close(done)
		sum, err = setup.Opener(e.List.List).ContentSum(e.List.Paths)
	}()
	return func() (string, error) {
		<-done
		return sum, err
	}
}

// Describe sets what the audit log says of the change: a text for each entry.
func (e *Edit) Describe(words []string) {
	e.Record.What, e.described = strings.Join(words, ", "), true
}

// indexed returns the file, for the function that changes it. If the list's index is of
// this content, the lines of an entry are taken from there.
func (e *Edit) indexed(old io.ReadSeeker, bar *term.FileProgress) io.ReadSeeker {
	index := e.Indexes().Of(e.List)
	if f, ok := old.(interface{ Stat() (fs.FileInfo, error) }); ok && index != nil {
		info, err := f.Stat()
		e.current = err == nil && index.Describes(e.File, info)
	}
	if index != nil && !e.current { // it was changed meanwhile, or what it holds is not certain
		e.Indexes().Forget(e.List)
		index = nil
	}
	return Indexed(bar.Reader(old, e.File), old, index, e.File)
}

// Indexed returns a file of a list, which is read from in. An index of its content finds the lines of
// an entry; nil: there is none.
func Indexed(in io.Reader, file io.Seeker, index *listfiles.Index, path string) io.ReadSeeker {
	f := seekingReader{in, file}
	if index == nil {
		return f
	}
	return indexedFile{f, index, path}
}

// indexedFile is a list's file with its index.
type indexedFile struct {
	io.ReadSeeker
	index *listfiles.Index
	path  string
}

// FindKeys implements [listedit.Finder].
func (f indexedFile) FindKeys(keys []string) ([]listfile.Entry, bool) {
	entries, all, err := f.index.FindIn(f.path, keys)
	return entries, all && err == nil
}

// seekingReader joins a reader that moves a progress bar with the file it reads.
type seekingReader struct {
	io.Reader
	io.Seeker
}

// auditByGate has the running gate record the change.
func (e *Edit) auditByGate(ctx context.Context) error {
	r := e.Record
	each := r.Each
	if each == nil {
		each = []string{r.What}
	}
	for _, what := range each {
		record := admin.AuditRecord{SudoUser: r.SudoUser, Command: r.Command, List: r.List, File: r.File, What: what, Why: r.Why}
		if _, err := admin.Call(ctx, e.Gate().Client, admin.OpAudit, record); err != nil {
			return err
		}
	}
	return nil
}

// auditLog returns the log for the change. If this user may not write to it, the running
// gate records the change.
func (e *Edit) auditLog() (log *listedit.Log, throughGate bool, err error) {
	log = &listedit.Log{Dir: e.Config.State.Dir}
	err = log.Check()
	switch {
	case err == nil:
		return log, false, nil
	case e.Gate().Client != nil && !atomicfile.IsTrap(err):
		return nil, true, nil
	}
	return nil, false, listfiles.WithAuthority(err, listfiles.WhoServes)
}

// SumOfFile returns the SHA-256 of a file of a list, in hexadecimal.
func SumOfFile(l *listfiles.List, path string) (string, error) {
	f, err := setup.Opener(l.List).Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return HexSum(f)
}

// HexSum returns the SHA-256 of what is left to read, in hexadecimal.
func HexSum(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
