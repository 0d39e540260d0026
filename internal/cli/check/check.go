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
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/verdict"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
	"spamgate/internal/proof"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
	"spamgate/smtpfilter"
)

type checkOptions struct {
	file     string
	json     bool
	all      bool
	message  string
	from     string
	hasFrom  bool
	rcpts    []string
	nextHop  []string
	listener string
	trace    bool
	offline  bool
	client   netip.Addr // invalid: not known
	helo     string
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
address in the header fields of [headers] check. Without --from the envelope
sender is taken from the Return-Path field, or else not judged. Text that is not
an address ("spam%example.net", "spammer") is judged by the addresses that mail
servers may make of it. Servers may add their own name: a running gate learns it
from the next hop's greeting, check from --next-hop.

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
	var o checkOptions
	var client string
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&o.all, "all", false, "with -: print accepted addresses, too")
	cmd.Flags().StringVar(&o.message, "message", "", "judge this message `FILE`; - is standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "with --message: envelope sender `ADDRESS`, or <>")
	cmd.Flags().StringArrayVar(&o.rcpts, "rcpt", nil, "a recipient `ADDRESS`; may be repeated")
	cmd.Flags().StringVar(&client, "client", "", "`IP` address of the server that sends, for SPF")
	cmd.Flags().StringVar(&o.helo, "helo", "", "`NAME` of that server in EHLO, for SPF of <>")
	cmd.Flags().StringArrayVar(&o.nextHop, "next-hop", nil, "with --message: greeting `NAME` of the next hop")
	cmd.Flags().StringVar(&o.listener, "listener", "", "judge as the listener or door `NAME` does (default:\nthe first listener; without a listener, all doors)")
	cmd.Flags().BoolVar(&o.trace, "trace", false, "show the whole decision: keys, bits, entries, precedence")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "do not ask the DNS: neither lists nor for proofs")
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
		return check(cmd, o, args)
	}
	cli.NameErrors(cmd)
	return cmd
}

// setClient sets the client of --client.
func (o *checkOptions) setClient(text string) (err error) {
	switch {
	case text != "":
		if o.client, err = netip.ParseAddr(text); err != nil {
			return fmt.Errorf("--client %q is not an IP address: write one such as 192.0.2.1", text)
		}
		o.client = o.client.Unmap().WithZone("")
	case o.helo != "":
		return errors.New("--helo goes with --client, since SPF needs both")
	}
	return nil
}

func (o checkOptions) validate(args []string) error {
	switch {
	case slices.Contains(o.rcpts, ""):
		return errors.New(`--rcpt "": name the recipient, such as ann@example.net`)
	case o.trace && o.message != "":
		return errors.New("--trace goes with addresses that are named: run check --trace ADDRESS for a sender of the message")
	case o.trace && slices.Contains(args, "-"):
		return errors.New("--trace goes with addresses that are named, not with -")
	case o.message != "" && len(args) > 0:
		return errors.New("--message takes no addresses: give the envelope sender with --from")
	case o.message == "" && (o.hasFrom || len(o.nextHop) > 0):
		return errors.New("--from and --next-hop go with --message")
	case len(o.rcpts) > 0 && slices.Contains(args, "-"):
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

func check(cmd *cobra.Command, o checkOptions, args []string) error {
	c, err := config.Load(o.file)
	if err != nil {
		return err
	}
	set, err := buildSet(cmd.Context(), c, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	judged, err := findJudged(c, o.listener)
	if err != nil {
		return err
	}
	if o.trace {
		if err := set.Probe(cmd.Context(), 0); err != nil {
			return fmt.Errorf("measuring the filter: %w", err)
		}
	}
	screen := term.Escape(cmd.OutOrStdout())
	out := bufio.NewWriter(screen)
	k := newSession(c, set, judged)
	k.options = o
	k.doors = doorSessions(c, set, o)
	if !o.offline {
		client, err := openDNS(c)
		if err != nil {
			return err
		}
		defer client.Close()
		k.askThrough(client)
	}
	if err := k.openProofs(); err != nil {
		return err
	}
	if err := k.readRecipients(); err != nil {
		return err
	}
	k.printTo(out)
	err = k.run(cmd, args, screen)
	if errors.Is(err, verdict.ErrNoAnswer) {
		err = fmt.Errorf("%w; a running gate reads the list again by itself, and so does check once the index is removed: rm %s",
			err, filepath.Join(c.State.Dir, "lists", "*", "current.*"))
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if k.listed {
		return cli.ErrListed
	}
	return nil
}

// run judges the arguments. The results for standard input are written to screen without
// another buffer.
func (k *session) run(cmd *cobra.Command, args []string, screen io.Writer) error {
	explain := k.printNamed
	switch {
	case k.options.message != "":
		return k.message(cmd)
	case args[0] == "-":
		return k.stream(cmd.InOrStdin(), screen)
	case k.options.trace:
		explain = k.trace
		k.generation = servedGeneration(cmd.Context(), k.config)
	}
	for _, arg := range args {
		if err := explain(arg); err != nil {
			return err
		}
	}
	return nil
}

// buildSet reads the lists, and reports their problems as the gate would.
func buildSet(ctx context.Context, c *config.Config, stderr io.Writer) (*blocklist.Set, error) {
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		return nil, err
	}
	lists.ReadOnly = true
	set, stats, err := cli.BuildSet(ctx, lists, stderr)
	if err != nil {
		return nil, setup.ExplainMissing(c, err)
	}
	for _, l := range stats {
		if l.Invalid > 0 {
			fmt.Fprintf(stderr, "spamgate: list %s: %s skipped; see spamgate config check\n", l.Name, text.Count(l.Invalid, "invalid line", "invalid lines"))
		}
		switch {
		case l.Err != nil && l.LastGood:
			fmt.Fprintf(stderr, "spamgate: list %s: its last good version serves: %v\n", l.Name, l.Err)
		case l.Err != nil:
			fmt.Fprintf(stderr, "spamgate: list %s: %v\n", l.Name, l.Err)
		}
	}
	return set, nil
}

// session is one run of check.
type session struct {
	config  *config.Config
	options checkOptions
	judge   judge.Judge
	dns     *dnslist.Client // asks lists in DNS; nil: they are not asked
	answers *answers        // about the last address or message
	alike   bool            // the lists say the same of a sender in the envelope and in the header
	policy  smtpfilter.Policy
	proofs  *proof.Proofs // proves senders; nil: all proofs are pending
	out     io.Writer
	json    *json.Encoder
	byDoors bool // doors decide, as where there is no listener
	listed  bool // an action other than accept was found
	doors   []doorSession

	recipients []verdict.Recipient // of --rcpt
	inHeader   bool                // an address is judged as one in the header only
	unasked    []string            // lists by recipient that nothing was asked, for lack of a recipient

	generation uint64 // what the running gate serves; 0: none was found
}

func (k *session) printTo(w io.Writer) {
	k.out, k.json = w, json.NewEncoder(w)
	k.json.SetEscapeHTML(false)
}

// finding is a verdict for programs.
type finding struct {
	Identity  string          `json:"identity,omitempty"`
	Address   string          `json:"address,omitempty"`
	Form      string          `json:"form,omitempty"` // what the header has, where servers may read it as Address
	Action    verdict.Action  `json:"action"`
	Match     *verdict.Match  `json:"match,omitempty"`
	Monitored []verdict.Match `json:"monitored,omitempty"`
	Proofs    []verdict.Proof `json:"proofs,omitempty"`    // those on which the action depends
	Proved    *finding        `json:"if_proven,omitempty"` // if a proof is pending
	Error     string          `json:"error,omitempty"`
}

func newFinding(f verdict.Finding) finding {
	r := finding{Identity: f.Identity, Address: f.Address, Form: f.Form, Action: f.Verdict.Action,
		Monitored: f.Verdict.Monitored, Proofs: f.Verdict.Proofs}
	if m := f.Verdict.Match; !m.IsZero() {
		r.Match = &m
	}
	if f.Verdict.Proved != nil {
		proved := newFinding(verdict.Finding{Verdict: *f.Verdict.Proved})
		proved.Proofs = nil
		r.Proved = &proved
	}
	if f.Err != nil {
		r.Error = f.Err.Error()
	}
	return r
}

// note notes whether what has got these actions is accepted.
func (k *session) note(actions ...verdict.Action) {
	k.listed = k.listed || slices.Max(actions) != verdict.Accept
}

// headline returns what happens to a sender or a message in a few words: the action of the
// lists, or, if doors decide, the strictest one of the doors.
func (k *session) headline(lists string, doors verdict.Action) string {
	switch {
	case !k.byDoors:
		return lists
	case doors == verdict.Accept && lists != verdict.Accept.String():
		return "listed, and no door refuses it"
	}
	return doors.String()
}
