package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"spamgate/internal/version"
)

// writePages writes a manual page for each command that the help shows.
func writePages(cmd *cobra.Command, dir string, date time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd.DisableAutoGenTag = true
	return eachCommand(cmd, func(cmd *cobra.Command) error {
		page, err := manPage(cmd, date)
		if err != nil {
			return fmt.Errorf("%s: %w", cmd.CommandPath(), err)
		}
		return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"), page, 0o644)
	})
}

// eachCommand calls do for a command and those below it.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command) error) error {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := eachCommand(sub, do); err != nil {
				return err
			}
		}
	}
	return do(cmd)
}

// manPage returns the page of a command. Package doc reads the texts as Markdown and
// shows flags as "--json[=false]"; the command is changed so that its page shows the
// texts as the help does.
func manPage(cmd *cobra.Command, date time.Time) ([]byte, error) {
	cmd.InitDefaultHelpFlag()
	cmd.Long = markdown(cmd.Long) + commands(cmd)
	cmd.Short = escape(cmd.Short)
	cmd.Example = outdent(cmd.Example)
	name, arguments, _ := strings.Cut(cmd.Use, " ")
	cmd.Use = strings.TrimSpace(name + " " + escape(arguments))
	cmd.Flags().VisitAll(plainFlag)

	var page bytes.Buffer
	header := &doc.GenManHeader{Date: &date, Source: "spamgate " + version.Number, Manual: "spamgate"}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return nil, err
	}
	text := strings.Replace(tidy(page.String()), date.Format("Jan 2006"), date.Format(time.DateOnly), 1)
	switch {
	case !strings.Contains(text, "\n.SH SEE ALSO\n"): // it has no other commands
		text += "\n.SH SEE ALSO\n\\fBspamgate(1)\\fP, \\fBspamgate.toml(5)\\fP"
	case cmd.Flags().Lookup("config") != nil || cmd.Name() == "spamgate":
		text += ", \\fBspamgate.toml(5)\\fP"
	}
	return []byte(text + "\n"), nil
}

// commands returns a section about the commands below cmd, or "".
func commands(cmd *cobra.Command) string {
	if !cmd.HasAvailableSubCommands() {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n# COMMANDS\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "**%s**\n\t%s\n\n", sub.CommandPath(), sub.Short) // escaped already
		}
	}
	return b.String()
}

// shownValue is a flag's value under another type: package doc quotes the default of a
// "string".
type shownValue struct{ pflag.Value }

func (shownValue) Type() string { return "shown" }

// plainFlag makes package doc show a flag as the help does: "--config=FILE", with the
// default at the end of its text.
func plainFlag(f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	usage = strings.Join(strings.Fields(usage), " ")
	if strings.HasPrefix(f.Name, "help") {
		usage = "print the help of the command"
	}
	if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && d != "0s" && !strings.Contains(usage, "default") {
		usage += " (default " + d + ")"
	}
	f.Usage, f.DefValue, f.NoOptDefVal = escape(usage), escape(value), ""
	f.Value = shownValue{f.Value}
}
