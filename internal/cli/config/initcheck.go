package config

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/mailservers"
	"spamgate/internal/term"
)

// checkReport is the output of init --check with --json.
type checkReport struct {
	For    mailservers.Kind      `json:"for"`
	Config string                `json:"config,omitempty"` // the gate's
	Source string                `json:"source"`           // where the server's configuration is from
	Good   bool                  `json:"good"`
	Lines  []mailservers.Finding `json:"lines"`
}

// runCheck tells whether the server's configuration has what the gate's needs.
func (o *initOptions) runCheck(cmd *cobra.Command) error {
	for _, name := range []string{"out", "force", "dry-run"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s does not go with --check, which writes nothing", name)
		}
	}
	if err := o.checkKind(); err != nil {
		return err
	}
	if o.server.AsksDNS() {
		return fmt.Errorf("--check does not go with --for %s, whose lines it cannot find: ask the resolver, as in dig +short test.ZONE, which answers 127.0.0.2", o.server)
	}
	s, err := o.checkSettings(cmd)
	if err != nil {
		return err
	}
	r := checkReport{For: o.server, Config: o.configFile, Good: true, Lines: []mailservers.Finding{}}
	if o.server != mailservers.Maildir {
		text, from, err := mailservers.Read(cmd.Context(), o.server, o.serverConfig, cmd.InOrStdin())
		if err != nil {
			return err
		}
		if r.Lines, err = mailservers.Check(o.server, s, text); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		r.Source = from
	}
	for _, l := range r.Lines {
		r.Good = r.Good && l.Good()
	}
	if o.json {
		if err := cli.PrintJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else {
		r.print(term.Escape(cmd.OutOrStdout()))
	}
	if !r.Good {
		return cli.ErrNo
	}
	return nil
}

// checkSettings returns the settings of the configuration in --config, or else of the
// one that the flags would make.
func (o *initOptions) checkSettings(cmd *cobra.Command) (mailservers.Settings, error) {
	if o.configFile == "" {
		if o.server == mailservers.Remote && o.nextHop == "" {
			return mailservers.Settings{}, fmt.Errorf("missing: --next-hop smtp://HOST (the server), or --config FILE")
		}
		o.setDefaults()
		if o.hostname == "" {
			o.hostname = "localhost"
		}
		if o.submission && o.tlsCert == "" {
			o.tlsCert, o.tlsKey = "/cert.pem", "/key.pem" // the server's lines do not depend on it
		}
		c, err := o.parse()
		if err != nil {
			return mailservers.Settings{}, err
		}
		return settingsOf(c, o.server)
	}
	for _, name := range settingFlags {
		if cmd.Flags().Changed(name) {
			return mailservers.Settings{}, fmt.Errorf("--%s does not go with --config, which says it; leave one of the two out", name)
		}
	}
	c, err := config.Load(o.configFile)
	if err != nil {
		return mailservers.Settings{}, err
	}
	if o.server.Asks() {
		return settingsOf(c, o.server)
	}
	if len(c.NextHop.Addr) > 1 || slices.ContainsFunc(c.Listeners, func(l config.Listener) bool { return l.NextHop != nil }) {
		fmt.Fprintf(cmd.ErrOrStderr(), "spamgate: of several next hops only the first of [next_hop] is checked: %s\n", c.NextHop.Addr[0])
	}
	if err := o.checkNextHop(c.NextHop); err != nil {
		return mailservers.Settings{}, fmt.Errorf("%s: the next hop is not of --for %s: %w", o.configFile, o.server, err)
	}
	return settingsOf(c, o.server)
}

func (r checkReport) print(w io.Writer) {
	if r.For == mailservers.Maildir {
		fmt.Fprintln(w, "a Maildir needs no lines anywhere")
		return
	}
	bad, advice := 0, 0
	for _, l := range r.Lines {
		switch {
		case !l.Good():
			bad++
		case l.Status != mailservers.Present:
			advice++
		}
		printFinding(w, l)
	}
	switch {
	case bad > 0:
		fmt.Fprintf(w, "\n%s: %d of %d lines are not right\n", r.Source, bad, len(r.Lines))
		term.PrintWrapped(w, "", fmt.Sprintf("spamgate config init --for %s prints the lines with explanations.", r.For))
	case advice > 0:
		fmt.Fprintf(w, "\n%s: good, with advice\n", r.Source)
	default:
		fmt.Fprintf(w, "\n%s: good\n", r.Source)
	}
}

// printFinding prints one line of the server's configuration and its status.
func printFinding(w io.Writer, l mailservers.Finding) {
	status := string(l.Status)
	if l.Advice && l.Status != mailservers.Present {
		status = "advice"
	}
	line := l.Line
	if line == "" {
		line = l.Found
	}
	const indent = "         "
	label := fmt.Sprintf("%-8s %s: ", status, l.File)
	for _, part := range term.Wrap(line, term.Columns-max(len(label), len(indent))) {
		fmt.Fprintln(w, label+part)
		label = indent
	}
	if l.Found != "" && l.Line != "" {
		term.PrintWrapped(w, indent+"now: ", l.Found)
	}
	if l.Why != "" {
		term.PrintWrapped(w, indent, l.Why)
	}
}
