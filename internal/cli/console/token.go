package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/accounts"
	"spamgate/internal/term"
)

func newTokenAdd() *cobra.Command {
	var role roleFlags
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a token, and print it once",
		Long: `Add a token for a program that uses the API, and print it on standard output. It
is not stored and cannot be printed again.

Exit codes: 0 added; 2 an error.`,
		Example: `  spamgate console token add monitoring --role viewer
  curl -H "Authorization: Bearer TOKEN" https://gate.example.net/api/v1/health`,
		Args: cobra.ExactArgs(1),
	}
	role.add(cmd)
	first := firstFlag(cmd)
	return runs(cmd, func(s *session, args []string) error {
		s.first = *first
		r, domains, err := role.parse()
		if err != nil {
			return err
		}
		done, err := s.change("token add", fmt.Sprintf("added the token %s, %s", strings.ToLower(args[0]), describe(r, domains)),
			accounts.Change{Do: accounts.DoAddToken, Name: args[0], Role: r, Domains: domains})
		if err != nil {
			return err
		}
		if !s.json {
			term.PrintWrapped(cmd.ErrOrStderr(), "", "The token follows; it is not shown again. A program sends it as Authorization: Bearer TOKEN.")
		}
		return s.printAdded(args[0], done.Secret, func(w io.Writer, _ accounts.Account) { fmt.Fprintln(w, done.Secret) })
	})
}

func newTokenRemove() *cobra.Command {
	return newRemove("token", "Remove tokens", "Remove tokens, which open nothing from then on.", accounts.DoRemoveToken)
}
