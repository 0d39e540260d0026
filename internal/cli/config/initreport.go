package config

import (
	"fmt"
	"io"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/mailservers"
	"spamgate/internal/term"
)

// initReport is the output of init with --json.
type initReport struct {
	For      mailservers.Kind    `json:"for"`
	File     string              `json:"file,omitempty"` // "" without --out
	Written  bool                `json:"written"`
	Made     []string            `json:"made"` // the files that were made, or with --dry-run would be
	Config   string              `json:"config"`
	Server   []mailservers.Block `json:"server"`
	Commands []string            `json:"commands"` // which do the same as the lines
	Next     []string            `json:"next"`     // commands to run next, in this order
	MailLog  string              `json:"mail_log,omitempty"`
	Test     string              `json:"test,omitempty"` // reads the mail log, touches no mail
}

// report prints what was written, the lines for the server, and what to do next.
func (o *initOptions) report(cmd *cobra.Command, c *config.Config, made []string) error {
	r := initReport{For: o.server, File: o.out, Written: o.out != "" && !o.dryRun, Made: made, Config: o.configText()}
	s, err := settingsOf(c, o.server)
	if err != nil {
		return err
	}
	switch o.server {
	case mailservers.Postfix, mailservers.PostfixPolicy, mailservers.PostfixMilter:
		s.Chroot = mailservers.PostfixChroot(cmd.Context())
	}
	r.Server, r.Commands = mailservers.Lines(o.server, s)
	r.Next = o.next()
	r.MailLog, r.Test = o.testCommand()
	if o.json {
		r.Made, r.Server, r.Commands = notNil(r.Made), notNil(r.Server), notNil(r.Commands)
		return cli.PrintJSON(cmd.OutOrStdout(), r)
	}
	if o.server != mailservers.Remote && !mailservers.Installed(o.server) {
		term.PrintWrapped(cmd.ErrOrStderr(), "warning: ", o.server.Name()+" is not installed on this machine; for a server on another machine use --for remote")
	}
	if o.out == "" || o.dryRun {
		fmt.Fprint(cmd.OutOrStdout(), r.Config)
	}
	w := o.outOrErr(cmd)
	if o.out == "" || o.dryRun {
		fmt.Fprintln(w)
	}
	verb := "written"
	if o.dryRun {
		verb = "would be written"
	}
	for _, path := range made {
		fmt.Fprintf(w, "%s: %s\n", term.ShortPath(path), verb)
	}
	r.printServer(w)
	r.printNext(w)
	return nil
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (r initReport) printServer(w io.Writer) {
	for _, b := range r.Server {
		fmt.Fprintf(w, "\n==== %s ====\n", b.File)
		for _, line := range term.Wrap(b.Do, term.Columns) {
			fmt.Fprintln(w, line)
		}
		fmt.Fprintf(w, "\n%s", b.Text)
	}
	if len(r.Commands) > 0 {
		fmt.Fprintf(w, "\nOr run these commands, which do the same without the comments:\n\n%s\n", strings.Join(r.Commands, "\n"))
	}
}

func (r initReport) printNext(w io.Writer) {
	if r.File == "" {
		return
	}
	title := "Next"
	if len(r.Server) > 0 {
		title = "Next: add the lines above, then run"
	}
	fmt.Fprintf(w, "\n==== %s ====\n", title)
	for _, command := range r.Next {
		fmt.Fprintln(w, command)
	}
	if r.Test != "" {
		fmt.Fprintln(w)
		term.PrintWrapped(w, "", "To see what a list would have refused (it reads the log, and touches no mail):")
		fmt.Fprintln(w, r.Test)
	}
}

// next returns the commands that follow.
func (o *initOptions) next() []string {
	if o.out == "" {
		return []string{}
	}
	file := term.ShellWord(o.out)
	next := []string{"spamgate config check --config " + file}
	if o.server != mailservers.Maildir && o.server != mailservers.Remote && !o.server.AsksDNS() {
		next = append(next, fmt.Sprintf("spamgate config init --for %s --check --config %s", o.server, file))
	}
	if o.server.Asks() && o.defaultListen() == systemdSockets {
		// The service wants the socket, which would take port 25.
		return append(next, "systemctl mask --now spamgate.socket", "systemctl enable --now spamgate.service")
	}
	if o.listen == systemdSockets {
		return append(next, "systemctl enable --now spamgate.socket spamgate.service")
	}
	return append(next, "spamgate serve --config "+file)
}

// testCommand returns the machine's mail log, and the command that tests a list against
// it. Where the log is in systemd's journal only, the command reads that.
func (o *initOptions) testCommand() (log, command string) {
	log = o.mailLog
	if log == "" {
		log = mailservers.MailLog("", o.server)
	}
	test := "spamgate lists test blocked-file --config " + term.ShellWord(o.path()) + " --against "
	if log != "" {
		return log, test + term.ShellWord(log)
	}
	if _, err := exec.LookPath("journalctl"); err == nil && o.server != mailservers.Maildir {
		return "", "journalctl SYSLOG_FACILITY=2 --since -7d | " + test + "-"
	}
	return "", ""
}

// settingsOf returns what the server of [next_hop], or the one that asks, needs to know of a
// configuration.
func settingsOf(c *config.Config, k mailservers.Kind) (mailservers.Settings, error) {
	n := c.NextHop
	s := mailservers.Settings{NextHop: n.Addr[0], TLS: n.TLS != "none", Proxy: n.Proxy != "", XCLIENT: n.Identity == "xclient" || n.Identity == "auto"}
	for _, l := range c.Listeners {
		s.Listen = append(s.Listen, l.Addr...)
		s.Logins = s.Logins || l.Logins() && l.NextHop == nil
	}
	return s, doorSettings(c, k, &s)
}
