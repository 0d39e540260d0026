package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
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
	listener string
}

func newCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [ADDRESS... | -]",
		Short: "Say what the gate would do with a sender, and why",
		Long: `Say what the gate would do with mail from each address, as envelope sender and
in the header, and which line of which list says so. The lists are read from
disk as they are now; a running gate is not asked. '<>' is the null sender.

With "-" addresses are read from standard input, one a line, and those that are
not accepted are printed, a line each: action, address, list, source, reason,
with tabs between. So are those that lists only log ("monitor"). --all prints
all.

Listeners may differ in the lists that count. The first one is asked about, or
the one that --listener names.

With --message a whole message is judged: the envelope sender and every address
in the header fields that [headers] check names. Without --from the reverse-path
is the message's Return-Path field, or else is not judged.

Exit codes: 0 all accepted; 1 an action other than accept; 2 an error.`,
		Example: `  spamgate check user@spam.example
  spamgate check --json - < senders.txt
  spamgate check --message mail.eml --from bounce@news.example`,
	}
	file := configFlag(cmd)
	var o checkOptions
	cmd.Flags().BoolVar(&o.json, "json", false, "a JSON object a line")
	cmd.Flags().BoolVar(&o.all, "all", false, "with -: print accepted addresses, too")
	cmd.Flags().StringVar(&o.message, "message", "", "judge this message `FILE`; - is standard input")
	cmd.Flags().StringVar(&o.from, "from", "", "with --message: envelope sender `ADDRESS`, or <>")
	cmd.Flags().StringArrayVar(&o.rcpts, "rcpt", nil, "with --message: a recipient `ADDRESS`; may be repeated")
	cmd.Flags().StringVar(&o.listener, "listener", "", "judge as the listener `NAME` does (default: the first)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.file = *file
		o.hasFrom = cmd.Flags().Changed("from")
		if err := o.validate(args); err != nil {
			return err
		}
		return check(cmd, o, args)
	}
	return cmd
}

func (o checkOptions) validate(args []string) error {
	switch {
	case o.message != "" && len(args) > 0:
		return errors.New("check: --message takes no addresses: give the envelope sender with --from")
	case o.message == "" && (o.hasFrom || len(o.rcpts) > 0):
		return errors.New("check: --from and --rcpt go with --message")
	case o.message == "" && len(args) == 0:
		return errors.New("check: no address: name one or more, - to read them from standard input, or --message FILE")
	case o.all && (len(args) != 1 || args[0] != "-"):
		return errors.New("check: --all goes with -: addresses that are named are always printed")
	}
	for _, arg := range args {
		if arg == "-" && len(args) > 1 {
			return errors.New("check: - goes alone")
		}
		if strings.TrimSpace(arg) == "" {
			return errors.New("check: an empty address: the null sender is written <>")
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
	listener, err := findListener(c, o.listener)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(harmless{cmd.OutOrStdout()})
	k := &checking{
		options: o,
		judge:   judgeOf(set, listener.Lists),
		policy:  policy(c, listener),
		out:     out,
		json:    json.NewEncoder(out),
	}
	k.json.SetEscapeHTML(false)
	switch {
	case o.message != "":
		err = k.message(cmd)
	case args[0] == "-":
		err = k.stream(cmd.InOrStdin())
	default:
		for _, arg := range args {
			if err = k.named(arg); err != nil {
				break
			}
		}
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	if k.listed {
		return errListed
	}
	return nil
}

// buildSet reads the lists, and says what the gate would say about them.
func buildSet(ctx context.Context, c *config.Config, stderr io.Writer) (*blocklist.Set, error) {
	lists, err := blocklistConfig(c, nil)
	if err != nil {
		return nil, err
	}
	set, stats, err := blocklist.Build(ctx, lists)
	if err != nil {
		return nil, err
	}
	for _, l := range stats {
		if l.Invalid > 0 {
			fmt.Fprintf(stderr, "spamgate: list %s: %s skipped; see spamgate config check\n",
				l.Name, count(l.Invalid, "invalid line", "invalid lines"))
		}
		if l.Err != nil {
			fmt.Fprintf(stderr, "spamgate: list %s: %v\n", l.Name, l.Err)
		}
	}
	return set, nil
}

// checking is one run of check.
type checking struct {
	options checkOptions
	judge   smtpfilter.Judge
	policy  smtpfilter.Policy
	out     *bufio.Writer
	json    *json.Encoder
	listed  bool // an action other than accept was found
}

// addressResult is what check says of an address.
type addressResult struct {
	Address  string   `json:"address"`
	Action   string   `json:"action"` // the stricter of envelope and header
	Envelope *finding `json:"envelope,omitempty"`
	Header   *finding `json:"header,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// finding is a verdict for programs.
type finding struct {
	Identity  string             `json:"identity,omitempty"`
	Address   string             `json:"address,omitempty"`
	Action    smtpfilter.Action  `json:"action"`
	Match     *smtpfilter.Match  `json:"match,omitempty"`
	Monitored []smtpfilter.Match `json:"monitored,omitempty"`
	Error     string             `json:"error,omitempty"`
}

func newFinding(f smtpfilter.Finding) finding {
	r := finding{Identity: f.Identity, Address: f.Address, Action: f.Verdict.Action, Monitored: f.Verdict.Monitored}
	if m := f.Verdict.Match; !m.IsZero() {
		r.Match = &m
	}
	if f.Err != nil {
		r.Error = f.Err.Error()
	}
	return r
}

// look judges an address as envelope sender and in the header.
func (k *checking) look(address string) (envelope, header smtpfilter.Finding) {
	if strings.HasPrefix(address, "<") && strings.HasSuffix(address, ">") {
		address = address[1 : len(address)-1]
	}
	envelope = k.policy.JudgeEnvelope(k.judge, address)
	header = smtpfilter.Finding{Identity: "header", Address: address}
	if envelope.Err == nil && address != "" {
		header.Verdict, header.Err = k.judge.Judge(smtpfilter.Header, address)
	}
	return envelope, header
}

// result looks an address up, and notes whether it is accepted.
func (k *checking) result(address string) (addressResult, smtpfilter.Finding, smtpfilter.Finding) {
	envelope, header := k.look(address)
	worst := max(envelope.Verdict.Action, header.Verdict.Action)
	if worst != smtpfilter.Accept {
		k.listed = true
	}
	r := addressResult{Address: address, Action: worst.String()}
	if envelope.Err != nil {
		r.Action, r.Error = "error", envelope.Err.Error()
		return r, envelope, header
	}
	e, h := newFinding(envelope), newFinding(header)
	e.Identity, e.Address, h.Identity, h.Address = "", "", "", ""
	r.Envelope, r.Header = &e, &h
	return r, envelope, header
}

// named explains one address.
func (k *checking) named(address string) error {
	r, envelope, header := k.result(address)
	if envelope.Err != nil {
		return fmt.Errorf("check: %q is no address: %w%s", address, envelope.Err, suggestAddress(address))
	}
	if k.options.json {
		return k.json.Encode(r)
	}
	fmt.Fprintf(k.out, "%s: %s\n", address, r.Action)
	k.explain("envelope", envelope)
	k.hears(envelope)
	if strings.IndexFunc(address, func(r rune) bool { return r > '~' }) >= 0 {
		fmt.Fprintf(k.out, "  %-9s as written here it is refused with 553 5.6.7: SMTPUTF8 is not offered\n", "")
	}
	if !sameVerdict(envelope.Verdict, header.Verdict) && address != "<>" {
		k.explain("header", header)
		k.hears(header)
	}
	return nil
}

// suggestAddress is what to ask about where a domain was given alone, else "".
func suggestAddress(domain string) string {
	a, err := sender.Parse("x@" + domain)
	if err != nil || a.Domain() == "" || strings.Contains(domain, "@") || !strings.Contains(domain, ".") {
		return ""
	}
	return "; to ask about the domain, give x@" + domain
}

// hears prints what a refused client reads.
func (k *checking) hears(f smtpfilter.Finding) {
	if reply := k.policy.Refusal(f, "ID"); !reply.IsZero() {
		fmt.Fprintf(k.out, "  %-9s the client hears: %s\n", "", reply)
	}
}

func sameVerdict(a, b smtpfilter.Verdict) bool {
	return a.Action == b.Action && a.Match == b.Match
}

// explain prints a finding for people.
func (k *checking) explain(where string, f smtpfilter.Finding) {
	v := f.Verdict
	switch m := v.Match; {
	case m.IsZero() && len(v.Monitored) == 0:
		fmt.Fprintf(k.out, "  %-9s no list matches\n", where)
	case !m.IsZero():
		fmt.Fprintf(k.out, "  %-9s %s by list %s: %s%s\n", where, v.Action, m.List, m.Entry, inBrackets(m.Reason))
		fmt.Fprintf(k.out, "  %-9s %s\n", "", source(m))
		if m.Note != "" {
			fmt.Fprintf(k.out, "  %-9s private note: %s\n", "", m.Note)
		}
	}
	for _, m := range v.Monitored {
		would := ""
		if m.Action != smtpfilter.Accept {
			would = ", would " + m.Action.String()
		}
		fmt.Fprintf(k.out, "  %-9s only logged%s by list %s: %s%s\n", where, would, m.List, m.Entry, inBrackets(m.Reason))
		fmt.Fprintf(k.out, "  %-9s %s\n", "", source(m))
	}
}

// source is where an entry stands; without confirmation nobody knows.
func source(m smtpfilter.Match) string {
	if m.Unconfirmed {
		return "the filter alone decided (confirm = false)"
	}
	return fmt.Sprintf("%s:%d", shorten(m.File), m.Line)
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return "  (" + s + ")"
}

// maxAddressLine bounds a line of standard input. SMTP's own bound on a path is
// far below it.
const maxAddressLine = 64 << 10

// stream judges the addresses of standard input.
func (k *checking) stream(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxAddressLine)
	n := 0
	var bad error
	for lines.Scan() {
		n++
		address := strings.TrimSpace(lines.Text())
		if address == "" {
			continue
		}
		r, envelope, header := k.result(address)
		if envelope.Err != nil && bad == nil {
			bad = fmt.Errorf("check: standard input, line %d: %q is no address: %w", n, address, envelope.Err)
		}
		monitored := append(envelope.Verdict.Monitored, header.Verdict.Monitored...)
		if r.Action == smtpfilter.Accept.String() && len(monitored) > 0 && !k.options.json {
			r.Action = "monitor"
			envelope.Verdict.Match = monitored[0]
		}
		if r.Action == smtpfilter.Accept.String() && len(monitored) == 0 && !k.options.all {
			continue
		}
		if err := k.line(r, envelope, header); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("check: standard input, line %d: %w", n+1, err)
	}
	return bad
}

// oneField keeps a text from looking like several columns or lines.
var oneField = strings.NewReplacer("\t", " ", "\r", " ", "\n", " ")

// line prints an address for programs.
func (k *checking) line(r addressResult, envelope, header smtpfilter.Finding) error {
	if k.options.json {
		return k.json.Encode(r)
	}
	f := envelope
	if header.Verdict.Action > envelope.Verdict.Action {
		f = header
	}
	m := f.Verdict.Match
	where, reason := "", m.Reason
	if !m.IsZero() {
		where = source(m)
	}
	if f.Err != nil {
		reason = f.Err.Error()
	}
	_, err := fmt.Fprintf(k.out, "%s\t%s\t%s\t%s\t%s\n", r.Action, oneField.Replace(r.Address), m.List, where, oneField.Replace(reason))
	return err
}
