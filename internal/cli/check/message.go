package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/wire"
)

// messageResult is the output for a message.
type messageResult struct {
	Action   string      `json:"action"`
	Decided  *finding    `json:"decided,omitempty"` // by this one
	Exempt   bool        `json:"exempt,omitempty"`  // all recipients are reachable by every sender
	Reply    string      `json:"reply,omitempty"`
	Findings []finding   `json:"findings"`
	Empty    []string    `json:"fields_without_address,omitempty"`
	Asked    []dnsAnswer `json:"asked,omitempty"` // what lists in DNS said

	Doors []doorResult `json:"doors,omitempty"` // policy services and milters
}

// message judges a whole message.
func (k *session) message(cmd *cobra.Command) error {
	section, err := readHeader(cmd, k.options.message, k.policy.HeaderLimit())
	if err != nil {
		return err
	}
	from, judged, err := k.reversePath(section)
	if err != nil {
		return err
	}
	exempt, err := k.exempt()
	if err != nil {
		return err
	}

	in := messageIn{section, from, judged, exempt}
	r, all, err := k.judgeMessage(cmd.Context(), in)
	if err != nil {
		return err
	}
	doors := verdict.Accept
	if r.Doors, doors, err = k.doorsOnMessage(cmd.Context(), in); err != nil {
		return err
	}
	headline := k.headline(r.Action, doors)
	k.note(doors)
	k.listed = k.listed || !k.byDoors && r.Action != verdict.Accept.String()
	if k.options.json {
		return k.json.Encode(r)
	}
	k.printMessage(headline, r, all, judged)
	k.printDoors(r.Doors)
	return nil
}

// messageIn is a message to judge.
type messageIn struct {
	section []byte // the header
	from    string
	judged  bool // there is an envelope sender to judge
	exempt  bool // all recipients are reachable by every sender
}

// judgeMessage judges a message. The finding about an envelope sender is the first one.
func (k *session) judgeMessage(ctx context.Context, in messageIn) (r messageResult, all []verdict.Finding, err error) {
	m, j := verdict.Message{ReversePath: in.from}, k.newJudge()
	envelope := verdict.Finding{Identity: verdict.EnvelopeIdentity, Address: in.from}
	if in.judged {
		envelope = k.policy.JudgeEnvelope(ctx, j, &m, verdict.For{})
		all = append(all, envelope)
		if envelope.Err != nil && !envelope.NoAnswer() {
			return r, nil, fmt.Errorf("--from %q is not an address: %w", in.from, envelope.Err)
		}
	}
	found := k.policy.ReadHeader(in.section, k.options.nextHop)
	if !in.judged || k.policy.JudgesHeader(envelope) {
		all = slices.AppendSeq(all, k.policy.JudgeHeader(ctx, j, &m, found, verdict.For{}))
		if found.TooMany() && !in.exempt {
			return r, nil, fmt.Errorf("--message: too many or too complex sender addresses in the header (limit %d, headers.max_addresses): the gate refuses such a message with 554", k.policy.AddressLimit())
		}
	}
	r = messageResult{Action: verdict.Accept.String(), Exempt: in.exempt, Findings: []finding{}, Empty: found.FieldsWithoutAddress()}
	for _, f := range all {
		if f.NoAnswer() {
			return r, nil, fmt.Errorf("%s %s: %w", f.Identity, f.Address, f.Err)
		}
		r.Findings = append(r.Findings, newFinding(f))
	}
	r.Asked = k.answered()
	decided := verdict.Decide(all, in.exempt)
	if !decided.Verdict.Match.IsZero() {
		d := newFinding(decided)
		r.Decided = &d
		r.Action = decided.Verdict.Action.String()
		r.Reply = k.policy.Refusal(decided, "ID").String()
	}
	return r, all, nil
}

func (k *session) printMessage(headline string, r messageResult, all []verdict.Finding, judged bool) {
	fmt.Fprintf(k.out, "%s: %s\n", k.options.message, headline)
	if r.Reply != "" && !k.byDoors {
		fmt.Fprintf(k.out, "  the client hears: %s\n", r.Reply)
	}
	if r.Exempt {
		fmt.Fprintf(k.out, "  reachable by every sender: %s\n", strings.Join(k.options.rcpts, ", "))
	}
	if !judged {
		fmt.Fprintln(k.out, "  envelope sender unknown, not judged: give --from")
	}
	for i, f := range all {
		stage := verdict.Header
		if judged && i == 0 {
			stage = verdict.Envelope
		}
		address := f.Address
		if address == "" {
			address = "<>"
		}
		if f.Form != "" {
			address = fmt.Sprintf("%q, which servers may read as %s", f.Form, address)
		}
		fmt.Fprintf(k.out, "%s %s: %s\n", f.Identity, address, f.Verdict.Action)
		if f.Err != nil {
			fmt.Fprintf(k.out, "  not understood, not looked up: %v\n", f.Err)
			continue
		}
		if f.Form != "" && f.Verdict.Match.IsZero() && len(f.Verdict.Monitored) == 0 {
			fmt.Fprintf(k.out, "  %-9s no block list matches, whatever servers make of it\n", "")
			continue
		}
		k.explain("", f, stage)
	}
	if judged && len(all) == 1 && len(k.policy.HeaderFields) > 0 && !k.policy.JudgesHeader(all[0]) {
		why := "an overriding allow list knows the envelope sender"
		if all[0].Address == "" {
			why = "the null sender's are not, unless headers.check_bounces = true"
		}
		fmt.Fprintf(k.out, "the header's senders are not judged: %s\n", why)
	}
	for _, field := range r.Empty {
		fmt.Fprintf(k.out, "%s: a field without an address\n", field)
	}
	k.printAnswers()
}

// reversePath returns the envelope sender, and whether there is one to judge.
func (k *session) reversePath(section []byte) (from string, judged bool, err error) {
	if k.options.hasFrom {
		if from := k.options.from; from != "<>" {
			return from, true, nil
		}
		return "", true, nil
	}
	const field = "Return-Path"
	found := header.Senders(section, []string{field})
	if len(found.Senders) > 0 {
		return found.Senders[0].Address, true, nil
	}
	return "", len(found.Empty) > 0, nil // Return-Path: <>
}

// exempt reports whether there are recipients and every sender may reach all of them.
func (k *session) exempt() (bool, error) {
	exempt := len(k.options.rcpts) > 0
	for _, arg := range k.options.rcpts {
		rcpt, err := wire.ParsePath(arg)
		recipient := verdict.ParseRecipient(rcpt.String())
		switch {
		case err != nil:
			return false, fmt.Errorf("--rcpt %q: %w", arg, err)
		case rcpt.Domain() == "" && !strings.EqualFold(rcpt.String(), "postmaster"):
			return false, fmt.Errorf("--rcpt %q: no domain: write user@example.net", arg)
		case !k.policy.TakesRecipient(recipient):
			return false, fmt.Errorf("--rcpt %q is refused whoever sends: it is not in policy.recipient_domains", arg)
		case !k.policy.KnowsRecipient(recipient):
			return false, fmt.Errorf("--rcpt %q is refused whoever sends: it is not in policy.valid_recipients", arg)
		}
		exempt = exempt && k.policy.ExemptRecipient(recipient)
	}
	return exempt, nil
}

// readHeader reads a message's header section, whose lines may end in LF as
// files' lines do.
func readHeader(cmd *cobra.Command, name string, limit int) ([]byte, error) {
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--message: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(2*limit)))
	if err != nil {
		return nil, fmt.Errorf("--message: %w", err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("--message: %s is empty", name)
	}
	var section []byte
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) == 0 {
			return section, nil
		}
		section = append(append(section, line...), "\r\n"...)
		if len(section) > limit {
			return nil, fmt.Errorf("--message: the header section is larger than headers.max_bytes (%d): the gate refuses such a message with 552", limit)
		}
	}
	return section, nil
}
