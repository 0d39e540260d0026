package lists

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// edit is one change of a list's file.
type edit struct {
	*session
	list   *listfiles.List
	file   string
	why    string
	dryRun bool
	create bool // the file, if it is not there
	record *listedit.Record

	recordEach bool // one record for each entry
	described  bool // the record has a text for each entry

	current bool // the list's index is of the file as it was before the change

	sum func() (string, error) // of the list's content before the change; known asks for it

	// before is called when the new content is on the disk but not yet in its place;
	// nil: accept is.
	before func() error
}

// edit returns a change of one of a list's files, which the command is to make.
func (s *session) edit(list *listfiles.List, file string) *edit {
	return &edit{session: s, list: list, file: file, why: s.reason, dryRun: s.dryRun}
}

// rewrite changes the file with change, which describes the change in e.record.What.
func (e *edit) rewrite(ctx context.Context, change func(old io.ReadSeeker, w io.Writer) error) (listedit.Change, error) {
	e.record = listedit.NewRecord(e.cmd.Name(), e.list.Name, e.file)
	e.record.Why = e.why
	if e.list.Managed {
		return e.rewriteManaged(ctx, change)
	}
	o := listedit.Options{
		DryRun:   e.dryRun,
		Create:   e.create,
		StateDir: e.list.StateDir(),
		MaxBytes: cmp.Or(e.list.MaxBytes, store.DefaultMaxBytes),
		Waiting: func() {
			fmt.Fprintf(e.stderr, "spamgate: waiting for another change of %s to end\n", term.ShortPath(e.file))
		},
		Before: func(c listedit.Change) error {
			if e.before != nil {
				return e.before()
			}
			return e.accept(ctx, c)
		},
		Record: e.record,
	}
	throughGate := false
	if !e.dryRun {
		var err error
		if o.Log, throughGate, err = e.auditLog(); err != nil {
			return listedit.Change{}, fmt.Errorf("%s is not changed: %w", e.file, err)
		}
	}
	bar := term.NewFileProgress(e.stderr, e.file, e.file) // it is read twice
	defer bar.Finish()
	result, err := listedit.Rewrite(ctx, e.file, func(old io.ReadSeeker, w io.Writer) error {
		in := e.indexed(old, bar)
		if !e.current && !e.dryRun && e.gate().Client == nil {
			e.sum = e.contentSum()
		}
		return change(in, w)
	}, o)
	bar.Finish()
	if err == nil && throughGate && result.Changed {
		if err = e.auditByGate(ctx); err != nil {
			err = fmt.Errorf("%s is changed, but that is not recorded: %w", term.ShortPath(e.file), err)
		}
	}
	if err != nil {
		return result, listfiles.WithAuthority(err, listfiles.WhoOwns)
	}
	return result, nil
}

// contentSum begins to compute the sum of what the list has on disk, which takes as long as
// the change itself, and returns a function that waits for it.
func (e *edit) contentSum() func() (string, error) {
	done := make(chan struct{})
	var sum string
	var err error
	go func() {
		defer close(done)
		sum, err = setup.Opener(e.list.List).ContentSum(e.list.Paths)
	}()
	return func() (string, error) {
		<-done
		return sum, err
	}
}

// describe sets what the audit log says of the change: a text for each entry.
func (e *edit) describe(words []string) {
	e.record.What, e.described = strings.Join(words, ", "), true
	if e.recordEach {
		e.record.Each = words
	}
}

// indexed returns the file, for the function that changes it. If the list's index is of
// this content, the lines of an entry are taken from there.
func (e *edit) indexed(old io.ReadSeeker, bar *term.FileProgress) io.ReadSeeker {
	in := seekingReader{bar.Reader(old, e.file), old}
	index := e.indexes().Of(e.list)
	if index == nil {
		return in
	}
	if f, ok := old.(interface{ Stat() (fs.FileInfo, error) }); ok {
		info, err := f.Stat()
		e.current = err == nil && index.Describes(e.file, info)
	}
	if !e.current { // it was changed meanwhile, or what it holds is not certain
		e.indexes().Forget(e.list)
		return in
	}
	return indexedFile{in, index, e.file}
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
func (e *edit) auditByGate(ctx context.Context) error {
	r := e.record
	each := r.Each
	if each == nil {
		each = []string{r.What}
	}
	for _, what := range each {
		if err := e.gate().Client.Audit(ctx, admin.AuditRecord{SudoUser: r.SudoUser, Command: r.Command, List: r.List, File: r.File, What: what, Why: r.Why}); err != nil {
			return err
		}
	}
	return nil
}

// writeRecord writes the record of a change to the audit log.
func (e *edit) writeRecord(ctx context.Context) error {
	log, throughGate, err := e.auditLog()
	switch {
	case err != nil:
		return err
	case throughGate:
		return e.auditByGate(ctx)
	}
	return log.Append(e.record)
}

// auditLog returns the log for the change. If this user may not write to it, the running
// gate records the change.
func (e *edit) auditLog() (log *listedit.Log, throughGate bool, err error) {
	log = &listedit.Log{Dir: e.config.State.Dir}
	err = log.Check()
	switch {
	case err == nil:
		return log, false, nil
	case e.gate().Client != nil && !atomicfile.IsTrap(err):
		return nil, true, nil
	}
	return nil, false, listfiles.WithAuthority(err, listfiles.WhoServes)
}

// checkEntries parses entries given as arguments.
func checkEntries(entries []string, o listfile.Options) ([]listfile.Entry, error) {
	parsed := make([]listfile.Entry, len(entries))
	var errs []error
	for i, text := range entries {
		e, err := listfile.ParseEntry(text, o)
		parsed[i] = e
		errs = append(errs, err)
	}
	return parsed, errors.Join(errs...)
}

// needEntries accepts one or more arguments, all of them entries.
func needEntries(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no entry: name one or more, such as user@spam.example or spam.example")
	}
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return errors.New("an empty entry: the null sender is written '<>'")
		}
		if arg == "-" && len(args) > 1 {
			return errors.New(`"-" reads the entries from standard input: give it alone`)
		}
	}
	return nil
}

// meaning describes what an entry matches.
func meaning(e listfile.Entry) string {
	what := whoseAddress(e.Key, e.Kind)
	if e.For != "" {
		what += ", in mail to " + whoseAddress(e.For, listedit.KindOf(e.For))
	}
	if e.Exception {
		return "lets pass what this list's entries would match of " + what
	}
	return "matches " + what
}

// whoseAddress describes the addresses that a key matches.
func whoseAddress(key string, kind sender.Kind) (what string) {
	name := strings.TrimPrefix(strings.TrimPrefix(key, "*."), "@")
	switch kind {
	case sender.KindAddress:
		what = "the address " + key
	case sender.KindAtDomain:
		what = "every address at exactly " + name
	case sender.KindDomain:
		what = name + " and every subdomain"
	case sender.KindSubdomains:
		what = "the subdomains of " + name + ", not itself"
	case sender.KindLocal:
		what = key + " at any domain"
	case sender.KindNull:
		what = "the null sender <>, which bounces have"
	}
	return what
}
