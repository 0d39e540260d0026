package lists

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/durable"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

// editing is one change of a list's file.
type editing struct {
	config  *config.Config
	list    *listfiles.List
	file    string
	command string
	why     string
	dryRun  bool
	create  bool // the file, if it is not there
	stderr  io.Writer
	gate    cli.RunningGate
	record  *listedit.Record
}

// rewrite changes the file by edit, which says what it did in e.record.What.
func (e *editing) rewrite(ctx context.Context, edit func(old io.ReadSeeker, w io.Writer) error) (listedit.Change, error) {
	e.record = listedit.NewRecord(e.command, e.list.Name, e.file)
	e.record.Why = e.why
	o := listedit.Options{
		DryRun:   e.dryRun,
		Create:   e.create,
		StateDir: e.list.StateDir(),
		Waiting: func() {
			fmt.Fprintf(e.stderr, "spamgate: waiting for another change of %s to end\n", term.ShortPath(e.file))
		},
		Before: func(c listedit.Change) error { return e.accept(ctx, c) },
		Record: e.record,
	}
	throughGate := false
	if !e.dryRun {
		var err error
		if o.Log, throughGate, err = e.auditLog(); err != nil {
			return listedit.Change{}, fmt.Errorf("lists %s: %s is not changed: %w", e.command, e.file, err)
		}
	}
	bar := term.NewFileProgress(e.stderr, e.file, e.file) // it is read twice
	defer bar.Finish()
	change, err := listedit.Rewrite(ctx, e.file, func(old io.ReadSeeker, w io.Writer) error {
		limited := &limitedFile{w: w, path: e.file, left: cmp.Or(e.list.MaxBytes, blocklist.DefaultMaxBytes)}
		return edit(seekingReader{bar.Reader(old, e.file), old}, limited)
	}, o)
	bar.Finish()
	if err == nil && throughGate && change.Changed {
		if err = e.gate.Client.Audit(ctx, admin.AuditRecord{
			SudoUser: e.record.SudoUser, Command: e.record.Command, List: e.record.List, File: e.record.File, What: e.record.What, Why: e.record.Why,
		}); err != nil {
			err = fmt.Errorf("%s is changed, but that is not recorded: %w", term.ShortPath(e.file), err)
		}
	}
	if err != nil {
		return change, fmt.Errorf("lists %s: %w", e.command, listfiles.WithAuthority(err, listfiles.WhoOwns))
	}
	return change, nil
}

// limitedFile is a list's new file, which may not become larger than a gate takes.
type limitedFile struct {
	w    io.Writer
	path string
	left int64
}

func (f *limitedFile) Write(b []byte) (int, error) {
	if f.left -= int64(len(b)); f.left < 0 {
		return 0, fmt.Errorf("%s would be larger than max_bytes allows, and no gate would take it: raise max_bytes for the list, or put the entries into another file", term.ShortPath(f.path))
	}
	return f.w.Write(b)
}

// seekingReader is a reader that shows on a bar, and what it reads from.
type seekingReader struct {
	io.Reader
	io.Seeker
}

// auditLog is where the change is to be recorded: in a log that can be written
// to, or else by the running gate.
func (e *editing) auditLog() (log *listedit.Log, throughGate bool, err error) {
	log = &listedit.Log{Dir: e.config.State.Dir}
	err = log.Check()
	switch {
	case err == nil:
		return log, false, nil
	case e.gate.Client != nil && !durable.IsTrap(err):
		return nil, true, nil
	}
	return nil, false, listfiles.WithAuthority(err, listfiles.WhoServes)
}

// checkEntries reads the entries that were named.
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

// needEntries is an Args of commands that take entries.
func needEntries(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("lists %s: no entry: name one or more, such as user@spam.example or spam.example", cmd.Name())
	}
	for _, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return fmt.Errorf("lists %s: an empty entry: the null sender is written '<>'", cmd.Name())
		}
	}
	return nil
}

// meaning says what an entry matches.
func meaning(e listfile.Entry) string {
	name := strings.TrimPrefix(strings.TrimPrefix(e.Key, "*."), "@")
	var what string
	switch e.Kind {
	case sender.KindAddress:
		what = "the address " + e.Key
	case sender.KindAtDomain:
		what = "every address at exactly " + name
	case sender.KindDomain:
		what = name + " and every subdomain"
	case sender.KindSubdomains:
		what = "the subdomains of " + name + ", not itself"
	case sender.KindLocal:
		what = e.Key + " at any domain"
	case sender.KindNull:
		what = "the null sender <>, which bounces have"
	}
	if e.Exception {
		return "lets pass what this list's entries would match of " + what
	}
	return "matches " + what
}
