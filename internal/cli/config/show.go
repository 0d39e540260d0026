package config

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/config/reference"
)

func newShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration that counts, or the defaults",
		Long: `Print every key with the value that the gate uses, as a configuration that it
reads again: paths are absolute, names are normalised, and a comment tells the
line of each value that the file sets. What may be a token in the URL of a list
is replaced by "...". Keys without an effect are left out, such as refresh in a
list that is a file. A [[listener]] has the keys that the file sets; the others
are those of [listen].

--defaults prints the defaults, and reads no file: name, and path or url, of a
list have none. --explain adds what each key does, as in spamgate.toml(5).

Exit codes: 0 printed; 2 the configuration is not valid.`,
		Example: `  spamgate config show --config /etc/spamgate/config.toml
  spamgate config show --defaults --explain > all-keys.toml
  spamgate config show --json | jq .next_hop`,
		Args: cobra.NoArgs,
	}
	file := cli.ConfigFlag(cmd)
	defaults := cmd.Flags().Bool("defaults", false, "print the defaults")
	explain := cmd.Flags().Bool("explain", false, "print before each key what it does")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, for programs")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case *explain && *asJSON:
			return errors.New("--explain writes comments, which JSON cannot have; leave one of the two out")
		case *defaults && cmd.Flags().Changed("config"):
			return errors.New("--defaults reads no file; leave --config out")
		}
		tables, about, err := tablesToShow(cmd, *file, *defaults)
		if err != nil {
			return err
		}
		reference.Sort(tables)
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), config.Values(tables))
		}
		explained := reference.Explain
		if !*explain {
			explained = nil
		}
		out := bytes.NewBufferString(about)
		if err := config.WriteTOML(out, tables, explained); err != nil {
			return err
		}
		if _, err := out.WriteTo(cmd.OutOrStdout()); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
		return nil
	}
	cli.NameErrors(cmd)
	return cmd
}

// tablesToShow returns the tables, and a comment about them.
func tablesToShow(cmd *cobra.Command, file string, defaults bool) ([]config.Table, string, error) {
	if defaults {
		return defaultTables(), "# The defaults of spamgate. A [[list]] needs a name, and path or url.\n" +
			"# spamgate.toml(5) also explains [[listener]], [[policy_service]], [[milter]] and\n# [[dns_server]], which have no default.\n\n", nil
	}
	c, tables, err := config.Effective(file)
	if err != nil {
		return nil, "", err
	}
	for _, warning := range c.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
	}
	return tables, fmt.Sprintf("# The configuration in %q as the gate reads it.\n# A value without the number of a line is a default.\n\n", file), nil
}

// defaultTables returns the defaults as a configuration has them: without tables that are
// not needed, and without keys that have no default or no effect.
func defaultTables() (tables []config.Table) {
	for _, t := range config.Defaults() {
		if t.Optional() {
			continue
		}
		var keys []config.Key
		for _, k := range t.Keys {
			required := t.Name == "list" && (k.Name == "name" || k.Name == "path" || k.Name == "url")
			obsolete := t.Name == "next_hop" && k.Name == "merge"
			if !required && !obsolete {
				keys = append(keys, k)
			}
		}
		t.Keys = keys
		tables = append(tables, t)
	}
	return tables
}
