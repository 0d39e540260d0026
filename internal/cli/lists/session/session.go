// Package session is what one run of a lists command has: its flags and its output, the configuration,
// the running gate, and the ways to read lists and to rewrite a file or a managed list.
package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

// Flags are flags that several commands have.
type Flags struct {
	List   string
	File   string
	Reason string
	JSON   bool
	DryRun bool

	Recipient string // --for
	ToAllowed bool   // --allow
}

// AddJSON adds --json.
func (f *Flags) AddJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.JSON, "json", false, "print JSON, for programs")
}

// AddDryRun adds --dry-run.
func (f *Flags) AddDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.DryRun, "dry-run", "n", false, "show what would be done, and change nothing")
}

// ForAudit is the usual description of --reason.
const ForAudit = "why, as `TEXT`, for the audit log"

// AddChange adds the flags of a command that changes lists.
func (f *Flags) AddChange(cmd *cobra.Command, reason string) {
	cmd.Flags().StringVarP(&f.Reason, "reason", "r", "", reason)
	f.AddDryRun(cmd)
	f.AddJSON(cmd)
}

// Session is one run of a command. Its context ends at an interrupt.
type Session struct {
	context.Context
	*Flags
	Cmd    *cobra.Command
	Config *config.Config // nil if the command does not need it
	Stderr io.Writer

	opened  *listfiles.Indexes // see Indexes
	dialled *local.RunningGate // see Gate
}

// Indexes returns the indexes that the gate has stored of the lists.
func (s *Session) Indexes() *listfiles.Indexes {
	if s.opened == nil {
		s.opened = listfiles.OpenIndexes(s, s.Config)
	}
	return s.opened
}

// Gate returns the running gate, which is dialled once. The session closes it.
func (s *Session) Gate() *local.RunningGate {
	if s.dialled == nil {
		gate := local.DialGate(s.Config)
		s.dialled = &gate
	}
	return s.dialled
}

// Rescan has the running gate read a list that was changed. Of a dry run there is no answer.
func (s *Session) Rescan(list string) *local.Answer {
	if s.DryRun {
		return nil
	}
	return s.Gate().Rescan(s, list)
}

// Close closes the connection to the gate.
func (s *Session) Close() {
	if s.dialled != nil {
		s.dialled.Close()
	}
}

// Recorded makes a change while no gate runs, and records it in the audit log. Change returns what
// it did.
func (s *Session) Recorded(list, file string, change func() (what string, err error)) error {
	log := &listedit.Log{Dir: s.Config.State.Dir}
	if err := log.Check(); err != nil {
		return fmt.Errorf("nothing has changed: %w", err)
	}
	what, err := change()
	if err != nil {
		return err
	}
	record := listedit.NewRecord(s.Cmd.Name(), list, file)
	record.What, record.Why = what, s.Reason
	if err := log.Append(record); err != nil {
		return errors.Join(errors.New("it is done, but that is not recorded"), err)
	}
	return nil
}

// Runs adds --config to a command, and has it load the configuration before do.
func (f *Flags) Runs(cmd *cobra.Command, do func(s *Session, args []string) error) {
	f.RunsIf(cmd, func([]string) bool { return true }, do)
}

// RunsIf is runs for a command that needs the configuration for some arguments.
func (f *Flags) RunsIf(cmd *cobra.Command, needed func(args []string) bool, do func(s *Session, args []string) error) {
	file := cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		s := &Session{Context: ctx, Flags: f, Cmd: cmd, Stderr: cmd.ErrOrStderr()}
		if needed(args) {
			if s.Config, err = config.Load(*file); err != nil {
				return err
			}
			defer readInstead(ctx, s.Config)()
		}
		defer s.Close()
		return do(s, args)
	}
}

// OneArgument accepts exactly one argument.
func OneArgument(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("name one %s", name)
		}
		return nil
	}
}

// OneList accepts exactly one argument, a list.
var OneList = OneArgument("list; spamgate lists status shows them")

// Print writes a report to standard output: as JSON, or with text.
func (s *Session) Print(report any, text func(w io.Writer)) error {
	out := bufio.NewWriter(term.Escape(s.Cmd.OutOrStdout()))
	if s.JSON {
		return errors.Join(cli.PrintJSON(out, report), out.Flush())
	}
	text(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// PrintChange writes the report of a command that changes something.
func (s *Session) PrintChange(report any, text func(w io.Writer)) error {
	err := s.Print(report, text)
	if err != nil && !s.DryRun {
		return fmt.Errorf("it is done, and only the report is lost: %w", err)
	}
	return err
}

// Would returns the words that begin what a dry run tells.
func Would(dryRun bool) string {
	if dryRun {
		return "would be "
	}
	return ""
}

// PrintOutcome prints the last line of a command that changes lists.
func PrintOutcome(w io.Writer, dryRun, changed bool, gate *local.Answer) {
	switch {
	case dryRun:
		fmt.Fprintln(w, "dry run: nothing has changed")
	case !changed:
		fmt.Fprintln(w, "there was nothing to change")
	case gate != nil:
		gate.Print(w)
	}
}

// ChangedBefore adds to an error which files were changed before it.
func (s *Session) ChangedBefore(err error, files []string) error {
	if len(files) == 0 || s.DryRun {
		return err
	}
	return fmt.Errorf("%w; changed before that: %s", err, ShortenAll(files))
}

// ShortenAll returns paths as people read them, joined by commas.
func ShortenAll(paths []string) string {
	short := make([]string, len(paths))
	for i, p := range paths {
		short[i] = term.ShortPath(p)
	}
	return strings.Join(short, ", ")
}

// Clock formats a time in the time zone of this machine.
func Clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
