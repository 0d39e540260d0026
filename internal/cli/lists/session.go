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

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

// listsFlags are flags that several commands have.
type listsFlags struct {
	config *string
	list   string
	file   string
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

// addTarget adds the flags that say to which list entries are added.
func (f *listsFlags) addTarget(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.list, "list", "l", "", "the `NAME` of the list")
	cmd.Flags().BoolVar(&f.toAllowed, "allow", false, "add to the default allow list, not the block list")
	cmd.MarkFlagsMutuallyExclusive("list", "allow")
}

// listToAddTo returns the list of the flags. Ran says that the command has ended: see asOwner.
func (s *session) listToAddTo() (l *listfiles.List, ran bool, err error) {
	kind := "block"
	if s.toAllowed {
		kind = "allow"
	}
	if l, err = writableList(s.config, s.list, kind, s.recipient != ""); err == nil && l.Managed {
		ran, err = s.asOwner()
	}
	return l, ran, err
}

// session is one run of a command. Its context ends at an interrupt.
type session struct {
	context.Context
	*listsFlags
	cmd    *cobra.Command
	config *config.Config
	stderr io.Writer

	opened *listfiles.Indexes // see indexes
}

// indexes returns the indexes that the gate has stored of the lists.
func (s *session) indexes() *listfiles.Indexes {
	if s.opened == nil {
		s.opened = listfiles.OpenIndexes(s, s.config)
	}
	return s.opened
}

// runs adds --config to a command, and has it load the configuration before do.
func (f *listsFlags) runs(cmd *cobra.Command, do func(s *session, args []string) error) {
	f.config = cli.ConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(*f.config)
		if err != nil {
			return err
		}
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		defer readInstead(ctx, c)()
		return do(&session{Context: ctx, listsFlags: f, cmd: cmd, config: c, stderr: cmd.ErrOrStderr()}, args)
	}
}

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
func (f *listsFlags) print(cmd *cobra.Command, report any, text func(w io.Writer)) error {
	out := bufio.NewWriter(term.Escape(cmd.OutOrStdout()))
	if f.json {
		return errors.Join(cli.PrintJSON(out, report), out.Flush())
	}
	text(out)
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// print writes a report to standard output.
func (s *session) print(report any, text func(w io.Writer)) error {
	return s.listsFlags.print(s.cmd, report, text)
}

// printChange writes the report of a command that changes something.
func (s *session) printChange(report any, text func(w io.Writer)) error {
	err := s.print(report, text)
	if err != nil && !s.dryRun {
		return fmt.Errorf("it is done, and only the report is lost: %w", err)
	}
	return err
}
