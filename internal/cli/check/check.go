// Package check is the command that says what the gate would do with a sender or a
// message, and why.
package check

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/check"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/term"
)

type options struct {
	file    string
	json    bool
	all     bool
	message string
	from    string
	hasFrom bool
	nextHop []string

	check.Question
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [ADDRESS... | -]",
		Short: "Show what the gate would do with a sender, and why",
		Long: `Show what the gate would do with mail from each address, as envelope sender and
in the header, and which line of which list decides. The command reads the lists
from disk and does not ask a running gate. '<>' is the null sender.

Lists in DNS are really asked, and the command says what they answer. --offline
leaves them out, and asks for no proof.

With "-" it reads addresses from standard input, one per line, and prints those
that are not accepted, one per line: action, address, list, source and reason,
separated by tabs. It also prints those that lists only log ("monitor"). --all
prints all addresses.

Listeners may use different lists. The default is the first listener; without a
listener, all doors. --listener names another listener, or a door.

Without --listener the command also shows what each policy service and milter
would answer about an address or a message that is named, and each DNS server
about an address. Without a listener, their answers decide about the first line
and the exit code: a list may have the sender, and no door refuse it.

--trace shows each step of a decision: every key under which a list may hold the
sender, the filter's bits for it, the entries that the lists hold, and which of
them counts. A running gate has its own filter, with the same bits unless its
hashes have a secret key.

With --message the command judges a whole message: the envelope sender and every
address in the header fields of [headers] check. What the gate refuses whoever
sends it (its size, its bytes, fields that are too long) is refused, too.
Without --from the envelope sender is taken from the Return-Path field, or else
not judged. Text that is not an address ("spam%example.net", "spammer") is
judged by the addresses that mail servers may make of it. Servers may add their
own name: a running gate learns it from the next hop's greeting, check from
--next-hop.

--rcpt says what mail to each recipient gets, by [[recipient_policy]] and lists
with per_recipient, and what becomes of a message to all of them.

Entries of allow lists with proven_by count only for a proven sender. --client
is the address of the server that sends, and --helo its name: then SPF is asked.
With --message the command verifies the DKIM signatures, too. What is not known
here stays open: the command says both what happens and what would if proven.

Exit codes: 0 all accepted; 1 an action other than accept, also at a door that
is shown; 2 an error.`,
		Example: `  spamgate check user@spam.example
  spamgate check --trace user@spam.example
  spamgate check --json - < senders.txt
  spamgate check --rcpt ann@example.net --rcpt bob@example.net user@spam.example
  spamgate check --message mail.eml --from a@news.example --client 192.0.2.1`,
	}
	file := cli.ConfigFlag(cmd)
	var o options
	var client string
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&o.all, "all", false, "with -: print accepted addresses, too")
	cmd.Flags().StringVar(&o.message, "message", "", "judge this message `FILE`; - is standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "with --message: envelope sender `ADDRESS`, or <>")
	cmd.Flags().StringArrayVar(&o.Recipients, "rcpt", nil, "a recipient `ADDRESS`; may be repeated")
	cmd.Flags().StringVar(&client, "client", "", "`IP` address of the server that sends, for SPF")
	cmd.Flags().StringVar(&o.Helo, "helo", "", "`NAME` of that server in EHLO, for SPF of <>")
	cmd.Flags().StringArrayVar(&o.nextHop, "next-hop", nil, "with --message: greeting `NAME` of the next hop")
	cmd.Flags().StringVar(&o.Listener, "listener", "", "judge as the listener or door `NAME` does (default:\nthe first listener; without a listener, all doors)")
	cmd.Flags().BoolVar(&o.Trace, "trace", false, "show the whole decision: keys, bits, entries, precedence")
	cmd.Flags().BoolVar(&o.Offline, "offline", false, "do not ask the DNS: neither lists nor for proofs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.file = *file
		o.hasFrom = cmd.Flags().Changed("from")
		if cmd.Flags().Changed("client") && client == "" {
			return errors.New(`--client "": write the IP address of the server that sends, such as 192.0.2.1`)
		}
		if err := o.setClient(client); err != nil {
			return err
		}
		if err := o.validate(args); err != nil {
			return err
		}
		return run(cmd, o, args)
	}
	cli.NameErrors(cmd)
	return cmd
}

// setClient sets the client of --client.
func (o *options) setClient(text string) (err error) {
	switch {
	case text != "":
		if o.Client, err = netip.ParseAddr(text); err != nil {
			return fmt.Errorf("--client %q is not an IP address: write one such as 192.0.2.1", text)
		}
		o.Client = o.Client.Unmap().WithZone("")
	case o.Helo != "":
		return errors.New("--helo goes with --client, since SPF needs both")
	}
	return nil
}

func (o options) validate(args []string) error {
	switch {
	case slices.Contains(o.Recipients, ""):
		return errors.New(`--rcpt "": name the recipient, such as ann@example.net`)
	case o.Trace && o.message != "":
		return errors.New("--trace goes with addresses that are named: run check --trace ADDRESS for a sender of the message")
	case o.Trace && slices.Contains(args, "-"):
		return errors.New("--trace goes with addresses that are named, not with -")
	case o.message != "" && len(args) > 0:
		return errors.New("--message takes no addresses: give the envelope sender with --from")
	case o.message == "" && (o.hasFrom || len(o.nextHop) > 0):
		return errors.New("--from and --next-hop go with --message")
	case len(o.Recipients) > 0 && slices.Contains(args, "-"):
		return errors.New("--rcpt goes with addresses that are named or with --message, not with -")
	case o.message == "" && len(args) == 0:
		return errors.New("no address: name one or more, - to read them from standard input, or --message FILE")
	case o.all && (len(args) != 1 || args[0] != "-"):
		return errors.New("--all goes with -: addresses that are named are always printed")
	}
	for _, arg := range args {
		if arg == "-" && len(args) > 1 {
			return errors.New("- goes alone")
		}
		if strings.TrimSpace(arg) == "" {
			return errors.New("an empty address: the null sender is written <>")
		}
	}
	return nil
}

func run(cmd *cobra.Command, o options, args []string) error {
	c, err := config.Load(o.file)
	if err != nil {
		return err
	}
	set, err := local.ReadLists(cmd.Context(), c, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if o.Trace {
		if err := set.Probe(cmd.Context(), 0); err != nil {
			return fmt.Errorf("measuring the filter: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	from, err := check.OnDisk(ctx, c, set, o.Offline)
	if err != nil {
		return err
	}
	served := sync.OnceValue(func() uint64 { return servedGeneration(ctx, c) })
	from.Served = func(context.Context) uint64 { return served() }
	p := newPrinter(cmd.OutOrStdout(), check.New(from))
	err = p.judge(cmd, o, args)
	if errors.Is(err, verdict.ErrNoAnswer) {
		err = fmt.Errorf("%w; a running gate reads the list again by itself, and so does check once the index is removed: rm %s",
			err, filepath.Join(c.State.Dir, "lists", "*", "current.*"))
	}
	if err := errors.Join(err, p.out.Flush()); err != nil {
		return err
	}
	if p.listed {
		return cli.ErrListed
	}
	return nil
}

// servedGeneration returns the generation of the running gate's lists, or 0 if none answers.
func servedGeneration(ctx context.Context, c *config.Config) uint64 {
	gate := local.DialGate(c)
	defer gate.Close()
	if gate.Client == nil {
		return 0
	}
	serving, err := admin.Call(ctx, gate.Client, admin.OpGeneration, admin.None{})
	if err != nil {
		return 0
	}
	return serving.Generation
}

// printer prints answers.
type printer struct {
	engine *check.Engine
	screen io.Writer
	out    *bufio.Writer // on screen
	listed bool          // an action other than accept was found
}

func newPrinter(w io.Writer, e *check.Engine) *printer {
	screen := term.Escape(w)
	return &printer{engine: e, screen: screen, out: bufio.NewWriter(screen)}
}

// judge judges the arguments. The results for standard input are written to the screen without
// another buffer.
func (p *printer) judge(cmd *cobra.Command, o options, args []string) error {
	switch {
	case o.message != "":
		return p.message(cmd, o)
	case args[0] == "-":
		lines, err := p.engine.Lines(o.Question, check.LineFormat{JSON: o.json, All: o.all})
		if err != nil {
			return err
		}
		p.listed, err = stream(cmd.Context(), lines, cmd.InOrStdin(), p.screen)
		return err
	}
	for _, arg := range args {
		o.Address = arg
		a, err := p.engine.Address(cmd.Context(), o.Question)
		if err != nil {
			return err
		}
		if err := p.print(a, o.json); err != nil {
			return err
		}
	}
	return nil
}

// message judges a whole message.
func (p *printer) message(cmd *cobra.Command, o options) error {
	in := io.NopCloser(cmd.InOrStdin())
	if o.message != "-" {
		var err error
		if in, err = os.Open(o.message); err != nil {
			return fmt.Errorf("--message: %w", err)
		}
	}
	defer in.Close()
	q := check.MessageQuestion{Question: o.Question, Name: o.message, NextHop: o.nextHop}
	if o.hasFrom {
		q.From = &o.from
	}
	a, err := p.engine.Message(cmd.Context(), in, q)
	if err != nil {
		return err
	}
	return p.print(a, o.json)
}

// print prints an answer.
func (p *printer) print(a *check.Answer, asJSON bool) error {
	p.listed = p.listed || a.Listed
	if !asJSON {
		a.Print(p.out)
		return nil
	}
	to := json.NewEncoder(p.out)
	to.SetEscapeHTML(false)
	return to.Encode(a.JSON)
}
