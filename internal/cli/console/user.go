package console

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/accounts"
)

// added is the JSON of a new account.
type added struct {
	accounts.Account
	Secret string `json:"secret,omitempty"` // of a token
	URL    string `json:"url,omitempty"`    // where the console is; empty if it is off
}

// printAdded writes what was added.
func (s *session) printAdded(name, secret string, text func(w io.Writer, a accounts.Account)) error {
	a, err := s.account(name)
	if err != nil {
		return err
	}
	report := added{Account: a, Secret: secret}
	if base := s.base(); base != nil {
		report.URL = base.String()
	}
	return s.print(report, func(w io.Writer) { text(w, a) })
}

func newUserAdd() *cobra.Command {
	var role roleFlags
	var password passwordFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a user",
		Long: `Add a user. The password is asked for twice, or read from standard input with
--password-stdin. It has at least 12 characters.

A name has letters, digits, ".", "_", "-" and "@"; case makes no difference.
With --domain the user sees only mail to recipients at these domains, and edits
only entries for them.

Exit codes: 0 added; 2 an error.`,
		Example: `  spamgate console user add ann --role editor
  spamgate console user add bob --role helpdesk --domain example.net
  pwgen -s 20 1 | tee pw | spamgate console user add eve --password-stdin`,
		Args: cobra.ExactArgs(1),
	}
	role.add(cmd)
	password.add(cmd)
	first := firstFlag(cmd)
	return runs(cmd, func(s *session, args []string) error {
		s.first = *first
		r, domains, err := role.parse()
		if err != nil {
			return err
		}
		if _, err := s.store.User(args[0]); err == nil { // before the prompt
			return fmt.Errorf("%w: %s", accounts.ErrExists, args[0])
		}
		if _, err := accounts.ParseName(args[0]); err != nil {
			return err
		}
		secret, err := password.read(cmd)
		if err != nil {
			return err
		}
		_, err = s.change("user add", fmt.Sprintf("added the user %s, %s", strings.ToLower(args[0]), describe(r, domains)),
			accounts.Change{Do: accounts.DoAddUser, Name: args[0], Password: secret, Role: r, Domains: domains})
		if err != nil {
			return err
		}
		return s.printAdded(args[0], "", func(w io.Writer, a accounts.Account) {
			fmt.Fprintf(w, "added %s, %s\n", a.Name, describe(a.Role, a.Domains))
			s.printWhere(w, s.base())
		})
	})
}

func newUserPasswd() *cobra.Command {
	var password passwordFlags
	cmd := &cobra.Command{
		Use:   "passwd NAME",
		Short: "Change the password of a user",
		Long: `Change the password of a user, whose sessions end. It is asked for twice, or
read from standard input with --password-stdin.

Exit codes: 0 changed; 2 an error.`,
		Example: `  spamgate console user passwd ann`,
		Args:    cobra.ExactArgs(1),
	}
	password.add(cmd)
	return runs(cmd, func(s *session, args []string) error {
		user, err := s.store.User(args[0])
		if err != nil {
			return err
		}
		secret, err := password.read(cmd)
		if err != nil {
			return err
		}
		what := "changed the password of " + user.Name
		if secret == "" {
			what = "removed the password of " + user.Name
		}
		if _, err := s.change("user passwd", what, accounts.Change{Do: accounts.DoSetPassword, Name: user.Name, Password: secret}); err != nil {
			return err
		}
		return s.printAccount(user.Name, what+", whose sessions have ended")
	})
}

// printAccount writes an account after a change, or what was changed.
func (s *session) printAccount(name, what string) error {
	a, err := s.account(name)
	if err != nil {
		return err
	}
	return s.print(a, func(w io.Writer) { fmt.Fprintln(w, what) })
}

func newUserSet() *cobra.Command {
	var role roleFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the role or the domains of a user",
		Long: `Change the role of a user, or the domains that the user is bound to. What no
flag names stays. The user's sessions end.

Exit codes: 0 changed; 2 an error.`,
		Example: `  spamgate console user set ann --role admin
  spamgate console user set bob --domain example.net --domain example.org
  spamgate console user set bob --all-domains`,
		Args: cobra.ExactArgs(1),
	}
	role.add(cmd)
	cmd.Flags().BoolVar(&all, "all-domains", false, "for recipients at all domains")
	cmd.MarkFlagsMutuallyExclusive("domain", "all-domains")
	cmd.MarkFlagsOneRequired("role", "domain", "all-domains")
	return runs(cmd, func(s *session, args []string) error {
		r, domains, err := role.parse()
		if err != nil {
			return err
		}
		user, err := s.store.User(args[0])
		if err != nil {
			return err
		}
		if !cmd.Flags().Changed("role") {
			r = user.Role
		}
		if domains == nil && !all {
			domains = user.Domains
		}
		what := fmt.Sprintf("%s is now %s", user.Name, describe(r, domains))
		if _, err := s.change("user set", what, accounts.Change{Do: accounts.DoSetRole, Name: user.Name, Role: r, Domains: domains}); err != nil {
			return err
		}
		return s.printAccount(user.Name, what)
	})
}

func newUserRemove() *cobra.Command {
	return newRemove("user", "Remove users", "Remove users, whose sessions end at once.", accounts.DoRemove)
}

// newRemove returns a command that removes accounts of one kind.
func newRemove(kind, short, long, remove string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove NAME...",
		Short:   short,
		Long:    long + "\n\nExit codes: 0 removed; 2 an error.",
		Example: "  spamgate console " + kind + " remove " + map[string]string{"user": "ann", "token": "monitoring"}[kind],
		Args:    cobra.MinimumNArgs(1),
	}
	return runs(cmd, func(s *session, args []string) error {
		removed, errs := []string{}, []error(nil)
		for _, name := range args {
			name = strings.ToLower(name)
			_, err := s.change(kind+" remove", fmt.Sprintf("removed the %s %s", kind, name), accounts.Change{Do: remove, Name: name})
			if err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, name)
		}
		report := struct {
			Removed []string `json:"removed"`
		}{removed}
		return errors.Join(append(errs, s.print(report, func(w io.Writer) {
			for _, name := range removed {
				fmt.Fprintln(w, "removed", name)
			}
		}))...)
	})
}
