package lists

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spamgate/blocklist/listfile"
	"spamgate/internal/config"
)

// complete makes shells complete the names of lists and formats. What a flag or an
// argument takes is read from its description: "NAME" or "LIST" is the name of a list.
func complete(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		var values cobra.CompletionFunc
		switch value, _ := pflag.UnquoteUsage(f); {
		case value == "NAME":
			values = listNames
		case f.Name == "format" && (cmd.Name() == "export" || cmd.Name() == "publish"):
			values = formatValues(listfile.Writable)
		case f.Name == "format":
			values = formatValues(listfile.Formats)
		default:
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, values); err != nil {
			panic(fmt.Sprintf("completion of --%s: %v", f.Name, err)) // a flag has two functions
		}
	})
	argument, _, _ := strings.Cut(strings.TrimPrefix(cmd.Use, cmd.Name()+" "), " ")
	name := strings.Trim(argument, "[]")
	item, repeated := strings.CutSuffix(name, "...")
	if alternatives := strings.Split(item, "|"); slices.Contains(alternatives, "LIST") || slices.Contains(alternatives, "NAME") {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 && !repeated {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names, directive := listNames(cmd, args, prefix)
			if len(alternatives) > 1 {
				directive = cobra.ShellCompDirectiveDefault // a file
			}
			return names, directive
		}
	}
}

// formatValues completes the names of formats.
func formatValues(formats []listfile.Format) cobra.CompletionFunc {
	var names []cobra.Completion
	for _, f := range formats {
		names = append(names, string(f))
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
}

// listNames completes the names of the configured lists that are not among the arguments
// yet. Without a valid configuration there are none.
func listNames(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	file, _ := cmd.Flags().GetString("config") // "" if the command has no such flag
	if c, err := config.Load(file); err == nil {
		for _, l := range c.Lists {
			if strings.HasPrefix(l.Name, prefix) && !slices.Contains(args, l.Name) {
				names = append(names, cobra.CompletionWithDesc(l.Name, l.Type+" list"))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
