package config

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/mailservers"
	"spamgate/internal/term"
)

// A questioner asks at a terminal.
type questioner struct {
	in  *bufio.Reader
	out io.Writer
}

// questions returns how to ask, or nil if nothing is to be asked.
func (o *initOptions) questions(cmd *cobra.Command) *questioner {
	if o.json || o.dryRun || !term.IsTerminal(cmd.InOrStdin()) || !term.IsTerminal(cmd.ErrOrStderr()) {
		return nil
	}
	for _, name := range settingFlags {
		if cmd.Flags().Changed(name) {
			return nil
		}
	}
	return &questioner{bufio.NewReader(cmd.InOrStdin()), cmd.ErrOrStderr()}
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 10_000

// one asks until check accepts the answer. An empty answer is preset.
func (q *questioner) one(question, preset string, check func(answer string) error) error {
	for {
		shown := ""
		if preset != "" {
			shown = " [" + preset + "]"
		}
		fmt.Fprintf(q.out, "%s%s: ", question, shown)
		line, err := q.in.ReadString('\n')
		if err != nil {
			fmt.Fprintln(q.out)
			return errors.New("no answer; nothing is written")
		}
		answer := strings.TrimSpace(line)
		if answer == "" {
			answer = preset
		}
		if err = check(answer); err == nil && len(answer) > maxAnswer {
			err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
		}
		if err == nil {
			return nil
		}
		term.PrintWrapped(term.Escape(q.out), "  ", err.Error())
	}
}

// ask asks for what the configuration needs.
func (q *questioner) ask(o *initOptions) error {
	if o.server == "" {
		err := q.one("Mail server after the gate, or which asks it ("+kindNames(", ")+")", string(installedServer()), func(answer string) error {
			o.server = mailservers.Kind(strings.ToLower(answer))
			return o.checkKind()
		})
		if err != nil {
			return err
		}
	} else if err := o.checkKind(); err != nil {
		return err
	}
	steps := []func(o *initOptions) error{q.askHostname, q.askDomains, q.askCertificate, q.askFile}
	switch o.server {
	case mailservers.Remote:
		steps = append([]func(o *initOptions) error{q.askNextHop}, steps...)
	case mailservers.Maildir, mailservers.PostfixPolicy, mailservers.PostfixMilter:
		steps = []func(o *initOptions) error{q.askFile}
	case mailservers.Rspamd, mailservers.DNS:
		steps = []func(o *initOptions) error{q.askZone, q.askFile}
	}
	for _, step := range steps {
		if err := step(o); err != nil {
			return err
		}
	}
	return nil
}

// installedServer returns the server that is on this machine, or "" if several are.
func installedServer() mailservers.Kind {
	var only mailservers.Kind
	for _, k := range []mailservers.Kind{mailservers.Postfix, mailservers.Exim, mailservers.OpenSMTPD} {
		if mailservers.Installed(k) {
			if only != "" {
				return ""
			}
			only = k
		}
	}
	return only
}

// tried returns what the configuration's check says of a setting, with settings that are
// good in place of those that were not asked for yet.
func (o *initOptions) tried(set func(*initOptions)) error {
	try := *o
	if !try.server.Asks() {
		try.hostname, try.domains = "mx.example.org", []string{"example.org"}
	}
	if try.nextHop == "" && try.server == mailservers.Remote {
		try.nextHop = "smtp://mx.example.net"
	}
	set(&try)
	if err := try.complete(); err != nil {
		return err
	}
	_, err := try.parse()
	return err
}

func (q *questioner) askHostname(o *initOptions) error {
	preset, _ := os.Hostname()
	if !strings.Contains(preset, ".") {
		preset = ""
	}
	return q.one("The gate's name, as in the MX record", preset, func(answer string) error {
		o.hostname = answer
		return o.tried(func(try *initOptions) { try.hostname = answer })
	})
}

func (q *questioner) askDomains(o *initOptions) error {
	return q.one("Domains that you accept mail for, with commas between", "", func(answer string) error {
		o.domains = strings.Split(answer, ",")
		return o.tried(func(try *initOptions) { try.domains = strings.Split(answer, ",") })
	})
}

func (q *questioner) askNextHop(o *initOptions) error {
	return q.one("The server, as in smtp://mx.example.net:25", "", func(answer string) error {
		o.nextHop = answer
		return o.tried(func(try *initOptions) { try.nextHop = answer })
	})
}

func (q *questioner) askZone(o *initOptions) error {
	return q.one("The zone for the lists, as in bl.example.org", "", func(answer string) error {
		o.zone = answer
		return o.tried(func(try *initOptions) { try.zone = answer })
	})
}

// askCertificate asks for the files of a certificate. The gate must be able to open them.
func (q *questioner) askCertificate(o *initOptions) error {
	exists := func(set *string) func(string) error {
		return func(answer string) error {
			if *set = answer; answer == "" {
				return nil
			}
			_, err := os.Stat(answer)
			return err
		}
	}
	if err := q.one("The certificate's file (empty: no TLS)", "", exists(&o.tlsCert)); err != nil || o.tlsCert == "" {
		return err
	}
	return q.one("Its key's file", o.tlsCert, exists(&o.tlsKey))
}

// askFile asks where to write, and whether an existing file may go.
func (q *questioner) askFile(o *initOptions) error {
	if o.out == "" {
		preset := "config.toml"
		if info, err := os.Stat("/etc/spamgate"); err == nil && info.IsDir() {
			preset = "/etc/spamgate/config.toml"
		}
		err := q.one("Write it to", preset, func(answer string) error {
			o.out = answer
			return nil
		})
		if err != nil {
			return err
		}
	}
	if _, err := os.Lstat(o.out); err != nil || o.force {
		return nil
	}
	yes, err := q.yes(o.out+" exists. Replace it?", false)
	if err == nil && !yes {
		err = o.exists()
	}
	o.force = yes
	return err
}

// yes asks for yes or no.
func (q *questioner) yes(question string, preset bool) (yes bool, err error) {
	shown := "y/N"
	if preset {
		shown = "Y/n"
	}
	err = q.one(question+" ("+shown+")", "", func(answer string) error {
		switch strings.ToLower(answer) {
		case "":
			yes = preset
		case "y", "yes":
			yes = true
		case "n", "no":
			yes = false
		default:
			return errors.New("answer y or n")
		}
		return nil
	})
	return yes, err
}

// offerTest offers to test the block list against the machine's mail log.
func (q *questioner) offerTest(cmd *cobra.Command, o *initOptions) error {
	log, _ := o.testCommand()
	if log == "" || o.out == "" {
		return nil
	}
	fmt.Fprintln(q.out)
	yes, err := q.yes("Run lists test against "+log+" now? It touches no mail.", true)
	if err != nil || !yes {
		return nil // the configuration is written: no answer is no failure
	}
	test, _, err := cmd.Root().Find([]string{"lists", "test"})
	if err != nil {
		return err
	}
	if err := test.ParseFlags([]string{"--config", o.out, "--against", log}); err != nil {
		return err
	}
	test.SetContext(cmd.Context())
	if err := test.RunE(test, []string{"blocked-file"}); !errors.Is(err, cli.ErrNo) {
		return err
	}
	return nil // some mail would have been refused, as the report says
}
