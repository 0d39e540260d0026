// Package console holds the commands for the accounts of the console.
package console

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// NewCommand returns the command group.
func NewCommand() *cobra.Command {
	return group("console", "Say who may use the console and its API",
		`Users log in to the console with a password, programs use its API with a token.
What each role may do is in docs/console.md. A change counts at once, whether a
gate runs or not, and is recorded in the audit log. In a fleet the accounts are
those of all gates, and a change needs the running gate; --first makes the very
first account without one.`,
		`  spamgate console user add ann --role helpdesk
  spamgate console token add monitoring --role viewer`,
		group("user", "Add, change, remove and list users",
			`Users log in to the console. A new password, role or domain ends a user's
sessions at once, and so does removing the user.`,
			`  spamgate console user add ann --role editor
  spamgate console user add bob --role helpdesk --domain example.net
  spamgate console user set ann --role admin
  spamgate console user passwd ann
  spamgate console user list`,
			newUserAdd(), newUserPasswd(), newUserSet(), newUserRemove(), newList("user", "List the users")),
		group("token", "Add, remove and list tokens",
			`Programs use the API with a token: "Authorization: Bearer TOKEN".`,
			`  spamgate console token add monitoring --role viewer
  spamgate console token remove monitoring`,
			newTokenAdd(), newTokenRemove(), newList("token", "List the tokens")),
		group("session", "List and end sessions",
			`A session begins when a user logs in. It ends after 12 hours, after an hour
without a request, or when somebody ends it.`,
			`  spamgate console session list
  spamgate console session end ann`,
			newSessionList(), newSessionEnd()))
}

// group returns a command with others below it.
func group(use, short, long, example string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(below...)
	// cobra's own line is too long for a group below a group.
	cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), `Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		`{{.CommandPath}} COMMAND --help says more about a command.`, 1))
	return cmd
}

// session is one run of a command.
type session struct {
	cmd    *cobra.Command
	config *config.Config
	store  *accounts.Store
	json   bool
	first  bool // makes the very first account of a fleet

	// apply makes a change: in the store, or through the running gate if a fleet shares the
	// accounts.
	apply func(accounts.Change) (accounts.Changed, error)
}

// runs adds --config and --json to a command, and has it run do as the owner of the state
// directory.
func runs(cmd *cobra.Command, do func(s *session, args []string) error) *cobra.Command {
	file := cli.ConfigFlag(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON, for programs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(*file)
		if err != nil {
			return err
		}
		if ran, err := local.AsOwner(cmd, c.State.Dir); ran || err != nil {
			return err
		}
		if _, err := setup.CheckState(c, false); err != nil {
			return err
		}
		s := &session{cmd: cmd, config: c, store: accounts.Open(setup.ConsoleDir(c)), json: *asJSON}
		defer s.store.Close()
		s.apply = s.store.Change
		if setup.SharesAccounts(c) {
			s.apply = s.applyShared
		}
		return do(s, args)
	}
	cli.NameErrors(cmd)
	return cmd
}

// change makes a change and records it. The record comes last: it says what is true.
func (s *session) change(command, what string, c accounts.Change) (accounts.Changed, error) {
	return s.record(command, what, func() (accounts.Changed, error) { return s.apply(c) })
}

// record is change for what do does.
func (s *session) record(command, what string, do func() (accounts.Changed, error)) (done accounts.Changed, err error) {
	log := &listedit.Log{Dir: s.config.State.Dir}
	if err := log.Check(); err != nil {
		return done, err
	}
	if done, err = do(); err != nil {
		return done, err
	}
	record := listedit.NewRecord("console "+command, "", "")
	record.What = what
	if err := log.Append(record); err != nil {
		return done, fmt.Errorf("it is done, and only not recorded: %w", err)
	}
	return done, nil
}

// errNoGate says that the change of shared accounts needs a gate.
var errNoGate = errors.New("no gate is running here, and the accounts are those of the fleet: start the gate, make the change on another one, or add --first if this is the very first account of all")

// errNotFirst says that there are accounts already.
var errNotFirst = errors.New("--first makes the very first account of a fleet, and this gate has accounts or has had those of its fleet: start the gate, and omit --first")

// applyShared has the running gate make a change. Without one only a gate that has left the fleet
// has accounts of its own: those that another one makes would be at odds with the fleet's.
func (s *session) applyShared(c accounts.Change) (accounts.Changed, error) {
	gate := local.DialGate(s.config)
	defer gate.Close()
	switch {
	case gate.Err != nil:
		return accounts.Changed{}, gate.Err
	case gate.Client != nil:
		done, err := admin.Call(s.cmd.Context(), gate.Client, admin.OpChangeAccounts, c)
		if local.IsTooOld(err) {
			err = errors.New("the running gate is an older version, which does not share accounts: spamgate handover replaces it")
		}
		return done, err
	}
	left, err := setup.LeftFleet(s.config)
	if err != nil {
		return accounts.Changed{}, err
	}
	if !left {
		if err := s.checkFirst(); err != nil {
			return accounts.Changed{}, err
		}
	}
	return s.store.Change(c)
}

// checkFirst checks that the change makes the very first account of a fleet, and is to do so.
func (s *session) checkFirst() error {
	if !s.first {
		return errNoGate
	}
	shared, err := setup.HasSharedAccounts(s.config)
	if err != nil {
		return err
	}
	if all, err := s.store.List(); err != nil || shared || len(all) > 0 {
		return cmp.Or(err, errNotFirst)
	}
	return nil
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

// account returns the account of a name in its normal form, which a change has just made.
func (s *session) account(name string) (accounts.Account, error) {
	all, err := s.store.List()
	if err != nil {
		return accounts.Account{}, err
	}
	name = strings.ToLower(name)
	i := slices.IndexFunc(all, func(a accounts.Account) bool { return a.Name == name })
	if i < 0 {
		return accounts.Account{}, fmt.Errorf("%w: %s was removed meanwhile", accounts.ErrNoAccount, name)
	}
	return all[i], nil
}

// describe says what an account may do: "editor for example.net".
func describe(role accounts.Role, domains []string) string {
	if len(domains) == 0 {
		return role.String()
	}
	return fmt.Sprintf("%s for %s", role, strings.Join(domains, ", "))
}

// base returns where the console is, or nil if it is off.
func (s *session) base() *url.URL {
	if s.config.Console.Addr == "" {
		return nil
	}
	return s.config.Console.Base(s.config.Console.Addr)
}

// printWhere says how to open the console.
func (s *session) printWhere(w io.Writer, base *url.URL) {
	if base == nil {
		term.PrintWrapped(w, "", fmt.Sprintf(`The console is off: write addr = "127.0.0.1:8025" below [console] in %s, and reload the gate.`, term.ShortPath(s.config.File)))
		return
	}
	fmt.Fprintf(w, "The console is at %s\n", base)
}
