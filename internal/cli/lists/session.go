package lists

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spamgate/blocklist"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// listsFlags are flags that several commands have.
type listsFlags struct {
	list   string
	file   string
	reason string
	json   bool
	dryRun bool

	recipient string // --for
	toAllowed bool   // --allow
}

func (f *listsFlags) addJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON, for programs")
}

func (f *listsFlags) addDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would be done, and change nothing")
}

// forAudit is the usual description of --reason.
const forAudit = "why, as `TEXT`, for the audit log"

// addChange adds the flags of a command that changes lists.
func (f *listsFlags) addChange(cmd *cobra.Command, reason string) {
	cmd.Flags().StringVarP(&f.reason, "reason", "r", "", reason)
	f.addDryRun(cmd)
	f.addJSON(cmd)
}

// addFile adds the flag that names one of a list's files.
func (f *listsFlags) addFile(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "file", "", "the `FILE`, if the list has several (default: the first)")
}

// addTarget adds the flags that say to which list entries are added.
func (f *listsFlags) addTarget(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.list, "list", "l", "", "the `NAME` of the list")
	cmd.Flags().BoolVar(&f.toAllowed, "allow", false, "add to the default allow list, not the block list")
	cmd.MarkFlagsMutuallyExclusive("list", "allow")
	f.addFile(cmd)
	f.addFor(cmd, forEntries)
}

// listToAddTo returns the list of the flags, and its file that is to be changed. Ran says that the
// command has ended: see asOwner.
func (s *session) listToAddTo() (l *listfiles.List, ran bool, err error) {
	kind := "block"
	if s.toAllowed {
		kind = "allow"
	}
	if l, err = writableList(s.config, s.list, kind, s.recipient != ""); err == nil {
		ran, err = s.asOwner(l.Managed)
	}
	return l, ran, err
}

// session is one run of a command. Its context ends at an interrupt.
type session struct {
	context.Context
	*listsFlags
	cmd    *cobra.Command
	config *config.Config // nil if the command does not need it
	stderr io.Writer

	opened  *listfiles.Indexes // see indexes
	dialled *local.RunningGate // see gate
}

// indexes returns the indexes that the gate has stored of the lists.
func (s *session) indexes() *listfiles.Indexes {
	if s.opened == nil {
		s.opened = listfiles.OpenIndexes(s, s.config)
	}
	return s.opened
}

// gate returns the running gate, which is dialled once. The session closes it.
func (s *session) gate() *local.RunningGate {
	if s.dialled == nil {
		gate := local.DialGate(s.config)
		s.dialled = &gate
	}
	return s.dialled
}

func (s *session) close() {
	if s.dialled != nil {
		s.dialled.Close()
	}
}

// read reads the lists as a start would, or only some of them, and writes nothing.
func (s *session) read(only ...config.List) (*blocklist.Set, []blocklist.ListStats, error) {
	c := *s.config
	if only != nil {
		c.Lists = only
	}
	b, err := setup.BlocklistConfig(&c, nil)
	if err != nil {
		return nil, nil, err
	}
	b.ReadOnly = true
	return local.BuildSet(s, b, s.stderr)
}

// recorded makes a change while no gate runs, and records it in the audit log. Change returns what
// it did.
func (s *session) recorded(list, file string, change func() (what string, err error)) error {
	log := &listedit.Log{Dir: s.config.State.Dir}
	if err := log.Check(); err != nil {
		return fmt.Errorf("nothing has changed: %w", err)
	}
	what, err := change()
	if err != nil {
		return err
	}
	record := listedit.NewRecord(s.cmd.Name(), list, file)
	record.What, record.Why = what, s.reason
	if err := log.Append(record); err != nil {
		return errors.Join(errors.New("it is done, but that is not recorded"), err)
	}
	return nil
}

// runs adds --config to a command, and has it load the configuration before do.
func (f *listsFlags) runs(cmd *cobra.Command, do func(s *session, args []string) error) {
	f.runsIf(cmd, func([]string) bool { return true }, do)
}

// runsIf is runs for a command that needs the configuration for some arguments.
func (f *listsFlags) runsIf(cmd *cobra.Command, needed func(args []string) bool, do func(s *session, args []string) error) {
	file := cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		s := &session{Context: ctx, listsFlags: f, cmd: cmd, stderr: cmd.ErrOrStderr()}
		if needed(args) {
			if s.config, err = config.Load(*file); err != nil {
				return err
			}
			defer readInstead(ctx, s.config)()
		}
		defer s.close()
		return do(s, args)
	}
}

// oneArgument accepts exactly one argument.
func oneArgument(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("name one %s", name)
		}
		return nil
	}
}

// oneList accepts exactly one argument, a list.
var oneList = oneArgument("list; spamgate lists status shows them")

// checkFlags has a command check its flags for empty values before it runs.
func checkFlags(cmd *cobra.Command) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkEmptyFlags(cmd); err != nil {
			return err
		}
		return run(cmd, args)
	}
}

// checkEmptyFlags returns an error for a flag without a value, as a script gives it whose
// variable is not set: another list would change than the one that is meant.
func checkEmptyFlags(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "note", f.Name == "reason": // texts; commands that need a reason say so
		case err == nil && f.Value.Type() == "string" && strings.TrimSpace(f.Value.String()) == "":
			err = fmt.Errorf(`--%s "": the value is empty; give one, or leave the flag out`, f.Name)
		}
	})
	return err
}

// print writes a report to standard output: as JSON, or with text.
func (s *session) print(report any, text func(w io.Writer)) error {
	out := bufio.NewWriter(term.Escape(s.cmd.OutOrStdout()))
	if s.json {
		return errors.Join(cli.PrintJSON(out, report), out.Flush())
	}
	text(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// printChange writes the report of a command that changes something.
func (s *session) printChange(report any, text func(w io.Writer)) error {
	err := s.print(report, text)
	if err != nil && !s.dryRun {
		return fmt.Errorf("it is done, and only the report is lost: %w", err)
	}
	return err
}

// would returns the words that begin what a dry run tells.
func would(dryRun bool) string {
	if dryRun {
		return "would be "
	}
	return ""
}

// printOutcome prints the last line of a command that changes lists.
func printOutcome(w io.Writer, dryRun, changed bool, gate *local.Answer) {
	switch {
	case dryRun:
		fmt.Fprintln(w, "dry run: nothing has changed")
	case !changed:
		fmt.Fprintln(w, "there was nothing to change")
	case gate != nil:
		gate.Print(w)
	}
}
