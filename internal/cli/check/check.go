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
leaves them out.

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

Exit codes: 0 all accepted; 1 an action other than accept, also at a door that
is shown; 2 an error.`,
		Example: `  spamgate check user@spam.example
  spamgate check --trace user@spam.example
  spamgate check --json - < senders.txt
  spamgate check --message mail.eml --from bounce@news.example`,
	}
	file := cli.ConfigFlag(cmd)
	var o checkOptions
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&o.all, "all", false, "with -: print accepted addresses, too")
	cmd.Flags().StringVar(&o.message, "message", "", "judge this message `FILE`; - is standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "with --message: envelope sender `ADDRESS`, or <>")
	cmd.Flags().StringArrayVar(&o.rcpts, "rcpt", nil, "with --message: a recipient `ADDRESS`; may be repeated")
	cmd.Flags().StringArrayVar(&o.nextHop, "next-hop", nil, "with --message: greeting `NAME` of the next hop")
	cmd.Flags().StringVar(&o.listener, "listener", "", "judge as the listener or door `NAME` does (default:\nthe first listener; without a listener, all doors)")
	cmd.Flags().BoolVar(&o.trace, "trace", false, "show the whole decision: keys, bits, entries, precedence")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "do not ask lists in DNS")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.file = *file
		o.hasFrom = cmd.Flags().Changed("from")
		if err := o.validate(args); err != nil {
			return err
		}
		return check(cmd, o, args)
	}
	cli.NameErrors(cmd)
	return cmd
}

func (o checkOptions) validate(args []string) error {
	switch {
	case o.trace && (o.message != "" || slices.Contains(args, "-")):
		return errors.New("--trace goes with addresses that are named, not with - or --message")
	case o.message != "" && len(args) > 0:
		return errors.New("--message takes no addresses: give the envelope sender with --from")
	case o.message == "" && (o.hasFrom || len(o.rcpts) > 0 || len(o.nextHop) > 0):
		return errors.New("--from and --rcpt go with --message, and so does --next-hop")
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
	if judged.Door == nil && (len(o.rcpts) > 0 || o.message != "") {
		files, err := setup.ReadRecipients(c)
		if err != nil {
			return err
		}
		setup.SetRecipients(&k.policy, files)
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
	out     io.Writer
	json    *json.Encoder
	byDoors bool // doors decide, as where there is no listener
	listed  bool // an action other than accept was found
	doors   []doorSession

	generation uint64 // what the running gate serves; 0: none was found
}

func (k *session) printTo(w io.Writer) {
	k.out, k.json = w, json.NewEncoder(w)
	k.json.SetEscapeHTML(false)
}

// addressResult is the output for an address.
type addressResult struct {
	Address  string      `json:"address"`
	Action   string      `json:"action"` // the stricter of envelope and header
	Envelope *finding    `json:"envelope,omitempty"`
	Header   *finding    `json:"header,omitempty"`
	Asked    []dnsAnswer `json:"asked,omitempty"` // what lists in DNS said
	Error    string      `json:"error,omitempty"`

	Doors []doorResult `json:"doors,omitempty"` // of addresses that are named
}

// finding is a verdict for programs.
type finding struct {
	Identity  string          `json:"identity,omitempty"`
	Address   string          `json:"address,omitempty"`
	Form      string          `json:"form,omitempty"` // what the header has, where servers may read it as Address
	Action    verdict.Action  `json:"action"`
	Match     *verdict.Match  `json:"match,omitempty"`
	Monitored []verdict.Match `json:"monitored,omitempty"`
	Error     string          `json:"error,omitempty"`
}

func newFinding(f verdict.Finding) finding {
	r := finding{Identity: f.Identity, Address: f.Address, Form: f.Form, Action: f.Verdict.Action, Monitored: f.Verdict.Monitored}
	if m := f.Verdict.Match; !m.IsZero() {
		r.Match = &m
	}
	if f.Err != nil {
		r.Error = f.Err.Error()
	}
	return r
}

// judgeAddress judges an address as envelope sender and in the header.
func (k *session) judgeAddress(address string) (envelope, header verdict.Finding) {
	if strings.HasPrefix(address, "<") && strings.HasSuffix(address, ">") {
		address = address[1 : len(address)-1]
	}
	j := k.newJudge()
	envelope = k.policy.JudgeEnvelope(context.Background(), j, &verdict.Message{ReversePath: address}, verdict.For{})
	header = verdict.Finding{Identity: "header", Address: address}
	switch {
	case envelope.Err != nil || address == "":
	case k.alike:
		header.Verdict = envelope.Verdict
	default:
		header.Verdict, header.Err = j.Judge(context.Background(), nil, verdict.Query{Stage: verdict.Header, Address: address})
	}
	return envelope, header
}

// note notes whether what has got these actions is accepted.
func (k *session) note(actions ...verdict.Action) {
	k.listed = k.listed || slices.Max(actions) != verdict.Accept
}

// result judges an address.
func (k *session) result(address string) (addressResult, verdict.Finding, verdict.Finding) {
	envelope, header := k.judgeAddress(address)
	worst := max(envelope.Verdict.Action, header.Verdict.Action)
	r := addressResult{Address: address, Action: worst.String(), Asked: k.answered()}
	if err := errors.Join(envelope.Err, header.Err); err != nil {
		r.Action, r.Error = "error", err.Error()
		return r, envelope, header
	}
	e, h := newFinding(envelope), newFinding(header)
	e.Identity, e.Address, h.Identity, h.Address = "", "", "", ""
	r.Envelope, r.Header = &e, &h
	return r, envelope, header
}

// named is the result for an address that was given as an argument.
type named struct {
	addressResult
	envelope, header verdict.Finding
	doors            verdict.Action // the strictest of the doors
}

// resultOfNamed judges an address that was given as an argument, as the doors do, too. It notes
// whether the address is accepted.
func (k *session) resultOfNamed(address string) (r named, err error) {
	r.addressResult, r.envelope, r.header = k.result(address)
	if err := k.notJudged(address, r.envelope, r.header); err != nil {
		return r, err
	}
	if r.Doors, r.doors, err = k.doorsOn(address); err != nil {
		return r, err
	}
	k.note(r.doors)
	if !k.byDoors {
		k.note(r.envelope.Verdict.Action, r.header.Verdict.Action)
	}
	return r, nil
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
