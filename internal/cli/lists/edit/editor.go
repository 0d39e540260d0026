package edit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsEditCommand() *cobra.Command {
	var o session.Flags
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Change a list in an editor, with a check before it counts",
		Long: `Open a copy of a list's file in an editor: $VISUAL, $EDITOR or vi. When the
editor ends, the command checks the copy: invalid lines, protected domains,
entries that cover the customers of a hosting company, and a large part of the
list that is gone. If it finds anything new, it asks whether to edit again, to
discard the changes, or to accept them. Then the copy takes the place of the
file in one step, with the same owner, mode and links.

If another program has changed the file meanwhile, nothing is changed, and the
error names the copy, which stays. The audit log has a line for each entry that
was added, removed or updated.

Exit codes: 0 the file is as you left it; 2 an error, or you discarded the copy:
nothing has changed unless the error says so.`,
		Example: `  spamgate lists edit blocked
  EDITOR=nano spamgate lists edit blocked --reason "after the audit"`,
		Args: session.OneList,
	}
	file := cli.ConfigFlag(cmd)
	addFile(&o, cmd)
	o.AddChange(cmd, session.ForAudit)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(*file)
		if err != nil {
			return err
		}
		// An interrupt is the editor's, so the session's context does not end at one.
		s := &session.Session{Context: cmd.Context(), Flags: &o, Cmd: cmd, Config: c, Stderr: cmd.ErrOrStderr()}
		defer s.Close()
		return listsEdit(s, args[0])
	}
	return cmd
}

// editReport is the output of edit.
type editReport struct {
	List    string        `json:"list"`
	File    string        `json:"file"`
	DryRun  bool          `json:"dry_run"`
	Changed bool          `json:"changed"`
	Entries []string      `json:"entries"` // "added spam.example" ...
	Gate    *local.Answer `json:"gate,omitempty"`
}

func listsEdit(s *session.Session, name string) error {
	list, err := session.WritableList(s.Config, name, "", false)
	if err != nil {
		return err
	}
	if ran, err := s.AsOwner(list.Managed); ran || err != nil {
		return err
	}
	file, err := session.FileToEdit(list, s.File)
	if err != nil {
		return err
	}
	e := &editorRun{Edit: s.Edit(list, file), stdin: s.Cmd.InOrStdin(), screen: s.Cmd.OutOrStdout(), interrupts: make(chan os.Signal, 1)}
	if s.JSON {
		e.screen = e.Stderr
	}
	e.RecordEach = true
	report, err := e.run(s)
	if err != nil {
		return err
	}
	return s.PrintChange(report, report.print)
}

// editorRun is one run of the command.
type editorRun struct {
	*session.Edit
	stdin      io.Reader
	interrupts chan os.Signal // meant for the editor, or for the question after it

	screen io.Writer // of the editor
	old    []byte    // the file as it was
	begun  []byte    // the copy as it was: its last line has an end
	path   string    // of the copy
	keep   bool      // the copy stays
}

// errDiscarded ends the command without a change.
var errDiscarded = errors.New("discarded: nothing has changed")

func (e *editorRun) run(ctx context.Context) (*editReport, error) {
	if err := e.copyFile(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if !e.keep {
			_ = os.RemoveAll(filepath.Dir(e.path)) // a copy of what is in the list
		}
	}()
	signal.Notify(e.interrupts, os.Interrupt, syscall.SIGQUIT)
	content, err := e.edited(ctx)
	signal.Stop(e.interrupts)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	report := &editReport{List: e.List.Name, File: e.File, DryRun: e.DryRun, Entries: []string{}}
	if bytes.Equal(content, e.begun) {
		return report, nil
	}
	if report.Entries, err = editedEntries(e.old, content, e.List.Options); err != nil {
		return nil, e.kept(err)
	}
	change, err := e.Rewrite(ctx, func(old io.ReadSeeker, w io.Writer) error {
		sum := sha256.New()
		if _, err := io.Copy(sum, old); err != nil {
			return err
		}
		if now := sha256.Sum256(e.old); !bytes.Equal(sum.Sum(nil), now[:]) {
			return listedit.ErrChanged
		}
		e.Describe(report.Entries)
		if len(report.Entries) == 0 {
			e.Describe([]string{"edited, with the same entries"})
		}
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		return nil, e.kept(err)
	}
	report.Changed = change.Changed
	if report.Changed && !e.DryRun {
		report.Gate = e.Gate().Rescan(ctx, e.List.Name)
	}
	return report, nil
}

// kept keeps the copy and adds its path to an error: it may be an hour's work.
func (e *editorRun) kept(err error) error {
	e.keep = true
	return fmt.Errorf("%w; your version is kept in %s", err, e.path)
}

// copyFile copies the file to where the editor works. First it checks what would stop a
// change: better now than after the work.
func (e *editorRun) copyFile(ctx context.Context) error {
	check := *e.Edit
	check.DryRun = true
	if _, err := check.Rewrite(ctx, func(old io.ReadSeeker, _ io.Writer) (err error) {
		if e.old, err = io.ReadAll(old); err != nil {
			return err
		}
		return listedit.ErrUnchanged
	}); err != nil {
		return err
	}
	if !e.DryRun {
		if _, _, err := e.AuditLog(); err != nil {
			return err
		}
	}
	if _, err := listedit.Find(bytes.NewReader(e.old), e.List.Options, nil); err != nil { // it is packed, or no list
		return fmt.Errorf("%s: %w", term.ShortPath(e.File), err)
	}
	if e.begun = e.old; len(e.old) > 0 {
		e.begun = listedit.Whole(e.old)
	}
	dir, err := os.MkdirTemp("", "spamgate-edit-")
	if err != nil {
		return err
	}
	e.path = filepath.Join(dir, filepath.Base(e.File)) // editors go by its ending
	if err := os.WriteFile(e.path, e.begun, 0o600); err != nil {
		_ = os.RemoveAll(dir)
		return err
	}
	return nil
}

// edited runs the editor until its result is good, or accepted. It returns the content,
// which ends in a line end.
func (e *editorRun) edited(ctx context.Context) ([]byte, error) {
	for {
		if err := e.runEditor(ctx); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(e.path)
		if err != nil {
			return nil, fmt.Errorf("nothing has changed: the editor left no file: %w", err)
		}
		if bytes.Equal(content, e.begun) {
			return content, nil
		}
		content = listedit.Whole(content)
		faults, fatal := e.faults(content)
		if len(faults) == 0 {
			return content, nil
		}
		again, err := e.ask(faults, fatal)
		if err != nil {
			return nil, err
		}
		if !again {
			return content, nil
		}
	}
}

// runEditor opens the copy in the editor. As for git and visudo, the variable may have
// arguments.
func (e *editorRun) runEditor(ctx context.Context) error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$@"`, editor, e.path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdin, e.screen, e.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nothing has changed: the editor (%s) ended with an error: %w; set EDITOR to choose another", editor, err)
	}
	return nil
}

// maxEditFaults bounds the faults that are shown.
const maxEditFaults = 20

// faults returns what is wrong with the new content, or likely to be. Fatal says that it
// is no list, and cannot be accepted.
func (e *editorRun) faults(content []byte) (faults []string, fatal bool) {
	guarded := listfiles.NewProtection(e.Config)
	after, err := checkText(e.File, content, e.List, guarded)
	if err != nil {
		return []string{err.Error()}, true
	}
	before, err := checkText(e.File, e.old, e.List, guarded)
	if err != nil {
		return []string{err.Error()}, true
	}
	return after.newFaults(before, e.List.MaxShrink), false
}

// ask prints the faults and asks what to do. Again says that the file is to be edited once
// more.
func (e *editorRun) ask(faults []string, fatal bool) (again bool, err error) {
	out := term.Escape(e.Stderr)
	for i, fault := range faults {
		if i == maxEditFaults {
			fmt.Fprintf(out, "and %s more\n", text.Number(len(faults)-i))
			break
		}
		fmt.Fprintln(out, fault)
	}
	question := "Edit again (e), discard the changes (d), or accept them as they are (a)? "
	if fatal {
		question = "Edit again (e), or discard the changes (d)? "
	}
	select {
	case <-e.interrupts: // the editor's
	default:
	}
	for {
		fmt.Fprint(e.Stderr, question)
		answer, err := e.answer()
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "e", "edit":
			return true, nil
		case "d", "discard":
			return false, errDiscarded
		case "a", "accept":
			if !fatal {
				return false, nil
			}
		}
		if err != nil {
			fmt.Fprintln(e.Stderr)
			return false, e.kept(errors.New("nothing has changed: there was no answer"))
		}
	}
}

// answer reads a line, and not a byte more: the rest is the editor's. An interrupt is an
// error; then the reading may wait until the process ends.
func (e *editorRun) answer() (line string, err error) {
	read := make(chan struct{})
	var text []byte
	var failed error
	go func() {
		defer close(read)
		var b [1]byte
		for {
			if _, failed = io.ReadFull(e.stdin, b[:]); failed != nil || b[0] == '\n' {
				return
			}
			text = append(text, b[0])
		}
	}()
	select {
	case <-e.interrupts:
		return "", errors.New("interrupted")
	case <-read:
		return string(text), failed
	}
}

func (r *editReport) print(w io.Writer) {
	would := session.Would(r.DryRun)
	for i, entry := range r.Entries {
		if i == maxShown {
			fmt.Fprintf(w, "and %s more\n", text.Count(len(r.Entries)-i, "entry", "entries"))
			break
		}
		fmt.Fprintln(w, would+entry)
	}
	if r.Changed && len(r.Entries) == 0 {
		fmt.Fprintf(w, "%s: %schanged, with the same entries\n", term.ShortPath(r.File), would)
	}
	session.PrintOutcome(w, r.DryRun, r.Changed, r.Gate)
}
