package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/accounts"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// newList returns the command that lists the accounts of a kind.
func newList(kind, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   short,
		Long:    short + ", with their roles and the domains that they are bound to.\n\nExit codes: 0 success; 2 an error.",
		Example: "  spamgate console " + kind + " list --json",
		Args:    cobra.NoArgs,
	}
	return runs(cmd, func(s *session, _ []string) error {
		all, err := s.store.List()
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(a accounts.Account) bool { return a.Token != (kind == "token") })
		return s.print(all, func(w io.Writer) { printAccounts(w, kind, all) })
	})
}

// printAccounts writes a table of users or tokens.
func printAccounts(w io.Writer, kind string, all []accounts.Account) {
	if len(all) == 0 {
		fmt.Fprintf(w, "There is no %s: spamgate console %s add NAME --role ROLE adds one.\n", kind, kind)
		return
	}
	t := term.Table{Columns: []term.Column{{Title: "name"}, {Title: "role", Left: true}, {Title: "domains", Left: true}}}
	if kind == "user" {
		t.Columns = append(t.Columns, term.Column{Title: "last login", Left: true})
	} else {
		t.Columns = append(t.Columns, term.Column{Title: "added", Left: true})
	}
	for _, a := range all {
		last := clock(&a.Created)
		switch {
		case !a.Token && !a.Password:
			last = "through a proxy"
		case !a.Token:
			last = cmp.Or(clock(a.LastLogin), "never")
		}
		t.Add(a.Name, a.Role.String(), cmp.Or(strings.Join(a.Domains, ", "), "all"), last)
	}
	t.Write(w, term.Columns)
}

// clock returns a time to the minute, "" for nil.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

func newSessionList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list [USER]",
		Short:   "List the sessions, of all users or of one",
		Long:    "List the sessions of all users, or of one: since when, from where and when they\nwere last in use.\n\nExit codes: 0 success; 2 an error.",
		Example: "  spamgate console session list ann",
		Args:    cobra.MaximumNArgs(1),
	}
	return runs(cmd, func(s *session, args []string) error {
		name := ""
		if len(args) > 0 {
			user, err := s.store.User(args[0])
			if err != nil {
				return err
			}
			name = user.Name
		}
		all, err := s.store.Sessions(name)
		if err != nil {
			return err
		}
		return s.print(all, func(w io.Writer) { printSessions(w, all) })
	})
}

func printSessions(w io.Writer, all []accounts.Session) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nobody is logged in")
		return
	}
	t := term.Table{Columns: []term.Column{{Title: "user"}, {Title: "since", Left: true}, {Title: "last request", Left: true}, {Title: "from", Left: true}, {Title: "id", Left: true}}}
	for _, session := range all {
		t.Add(session.Name, clock(&session.Began), clock(&session.Seen), session.From, session.ID)
	}
	t.Write(w, term.Columns)
}

func newSessionEnd() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "end USER",
		Short:   "End the sessions of a user",
		Long:    "End all sessions of a user, on all gates of a fleet, or the one here with an\n--id of session list. The user can log in again: to prevent it, change the\npassword or remove the user.\n\nExit codes: 0 success; 2 an error.",
		Example: "  spamgate console session end ann",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&id, "id", "", "only the session with this `ID`")
	return runs(cmd, func(s *session, args []string) error {
		user, err := s.store.User(args[0])
		if err != nil {
			return err
		}
		done, err := s.record("session end", "ended sessions of "+user.Name, func() (accounts.Changed, error) {
			if cmd.Flags().Changed("id") {
				return accounts.Changed{Ended: 1}, s.store.EndID(user.Name, id)
			}
			return s.apply(accounts.Change{Do: accounts.DoEndSessions, Name: user.Name})
		})
		if err != nil {
			return err
		}
		report := struct {
			Ended int `json:"ended"`
		}{done.Ended}
		return s.print(report, func(w io.Writer) {
			fmt.Fprintln(w, "ended", text.Count(done.Ended, "session", "sessions")+s.here(id))
		})
	})
}

// here says where sessions have ended that were counted.
func (s *session) here(id string) string {
	if id != "" || !setup.SharesAccounts(s.config) {
		return ""
	}
	return " here, and those on the other gates"
}
