package console

import (
	"fmt"

	"github.com/spf13/cobra"

	"spamgate/internal/accounts"
)

// roleFlags are the flags that say what an account may do.
type roleFlags struct {
	role    string
	domains []string
}

// add adds the flags to a command.
func (f *roleFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.role, "role", accounts.Viewer.String(), "`ROLE`: viewer (the default), helpdesk, editor, admin")
	cmd.Flags().Lookup("role").DefValue = "" // the line would be too long
	cmd.Flags().StringArrayVar(&f.domains, "domain", nil, "only for recipients at this `DOMAIN`; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(accounts.Roles, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// parse returns the values of the flags.
func (f *roleFlags) parse() (accounts.Role, []string, error) {
	role, err := accounts.ParseRole(f.role)
	if err != nil {
		return 0, nil, fmt.Errorf("--role: %w", err)
	}
	domains, err := accounts.ParseDomains(f.domains)
	if err != nil {
		return 0, nil, fmt.Errorf("--domain: %w", err)
	}
	return role, domains, nil
}

// firstFlag adds --first to a command.
func firstFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("first", false, "the fleet's very first account; needs no running gate")
}

// passwordFlags are the flags that say where a password comes from.
type passwordFlags struct{ stdin, none bool }

func (f *passwordFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.stdin, "password-stdin", false, "read the password from standard input")
	cmd.Flags().BoolVar(&f.none, "no-password", false, "only a proxy can log the user in ([console] sso_header)")
	cmd.MarkFlagsMutuallyExclusive("password-stdin", "no-password")
}

// read returns the password, "" for none.
func (f *passwordFlags) read(cmd *cobra.Command) (string, error) {
	switch {
	case f.none:
		return "", nil
	case f.stdin:
		return readLine(cmd.InOrStdin())
	}
	return prompt(cmd)
}
