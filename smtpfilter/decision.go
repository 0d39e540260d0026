package smtpfilter

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// DecisionLog writes decisions about messages to the log and to the history, alike for every door.
type DecisionLog struct {
	Log *slog.Logger

	// ShowAddress returns an address as the log and the history show it.
	ShowAddress func(address string) string

	// History takes the decisions, too; nil: there is none.
	History History
}

// History takes the decisions about messages, whatever the level of the log is. Its methods are
// safe for concurrent use, and never wait.
type History interface {
	// Accepted counts an accepted message of senders that no list has, of which nothing else
	// was recorded. It reports whether Record wants the decision all the same, and then it
	// does not count it.
	Accepted(instant time.Time) bool

	// Record takes a decision.
	Record(verdict.Decision)
}

// Wants reports whether the log or the History takes a decision, of which only Event must be set.
// It is asked once for each decision. Recorded says whether the History has taken another one
// about the message, so that it gets the rest.
func (l DecisionLog) Wants(d *verdict.Decision, f *verdict.Finding, recorded *bool) bool {
	e := verdict.EventOf(d.Event)
	d.Level, d.Action = e.Level, cmp.Or(d.Action, e.Action)
	switch {
	case l.History == nil:
	case d.Event == verdict.EventAccepted && f.Verdict.Match.IsZero() && !*recorded:
		d.Kept = l.History.Accepted(time.Now())
	default:
		d.Kept = true
	}
	*recorded = *recorded || d.Kept
	return d.Kept || l.Log.Enabled(context.Background(), d.Level)
}

// Write completes a decision with the message, the finding and the recipients that it is about,
// and writes it.
func (l DecisionLog) Write(d *verdict.Decision, m *verdict.Message, f *verdict.Finding, n int, rcpt func(i int) string) {
	d.Time, d.Duration = time.Now(), d.Duration.Round(time.Microsecond)
	d.Listener, d.Helo = m.Listener, m.Helo
	d.From, d.To = "<"+l.show(m.ReversePath)+">", l.ShowAll(n, rcpt)
	l.setFinding(d, f)
	if l.Log.Enabled(context.Background(), d.Level) {
		// LogAttrs would look up the caller, which the log does not show.
		r := slog.NewRecord(d.Time, d.Level, d.Event, 0)
		addAttrs(&r, d)
		_ = l.Log.Handler().Handle(context.Background(), r) // a failure does not change the decision
	}
	if d.Kept {
		l.setParties(d, m, n, rcpt)
		l.History.Record(*d)
	}
}

// addAttrs adds the attributes of a line. Their array is on the stack, and the log's handler must
// not be called above it.
func addAttrs(r *slog.Record, d *verdict.Decision) {
	r.AddAttrs(d.AppendAttrs(make([]slog.Attr, 0, 24))...)
}

// setFinding sets what a finding says.
func (l DecisionLog) setFinding(d *verdict.Decision, f *verdict.Finding) {
	d.Identity = f.Identity
	m := &f.Verdict.Match
	switch {
	case m.Sender != "":
		d.Sender, d.ByWayOf = l.show(m.Sender), l.show(f.Address)
	case f.Identity != verdict.EnvelopeIdentity:
		d.Sender, d.Form = l.show(f.Address), l.show(f.Form)
	}
	if !m.IsZero() {
		d.List, d.Entry, d.EntryFor = m.List, l.showKey(m.Entry), l.showKey(m.For)
		if d.Unconfirmed = m.Unconfirmed; !m.Unconfirmed && m.File != "" {
			d.Source = m.Source()
		}
		d.Reason, d.Note, d.Policy = m.Reason, m.Note, f.Policy
	}
	d.Proof, d.Unproven = proofs(&f.Verdict)
}

// setParties sets the addresses that a line of the log may have no place for.
func (l DecisionLog) setParties(d *verdict.Decision, m *verdict.Message, n int, rcpt func(i int) string) {
	d.MoreRecipients = max(0, n-verdict.MaxParties)
	if n > 0 {
		d.Recipients = make([]string, min(n, verdict.MaxParties))
	}
	for i := range d.Recipients {
		d.Recipients[i] = l.show(rcpt(i))
	}
	seen := map[string]bool{}
	for _, s := range m.HeaderSenders {
		if s.Address == m.ReversePath || len(d.HeaderSenders) == verdict.MaxParties {
			continue
		}
		if shown := l.show(s.Address); !seen[shown] {
			seen[shown] = true
			d.HeaderSenders = append(d.HeaderSenders, shown)
		}
	}
	d.HeaderSenders = slices.Clip(d.HeaderSenders)
}

// proofs returns what was asked to prove the sender, and the allow lists whose entries do not
// count, since nothing proves it.
func proofs(v *verdict.Verdict) (proof, unproven string) {
	if v.Proofs == nil {
		return "", ""
	}
	var texts, lists []string
	for _, p := range v.Proofs {
		text := cmp.Or(p.Why, p.By.String()+": "+p.State.String())
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for _, m := range v.Matches {
		if m.Unproven && !slices.Contains(lists, m.List) {
			lists = append(lists, m.List)
		}
	}
	return strings.Join(texts, "; "), strings.Join(lists, ",")
}

// showKey returns an entry, or one side of it, as the log shows it: the address of a person is
// hidden.
func (l DecisionLog) showKey(key string) string {
	if local, _, ok := strings.Cut(key, "@"); ok && local != "" {
		return l.show(key)
	}
	return key
}

// show returns an address as the log shows it.
func (l DecisionLog) show(address string) string {
	if address == "" {
		return ""
	}
	return l.ShowAddress(address)
}

// maxShown bounds the recipients in one line, in bytes.
const maxShown = 2048

// ShowAll returns n recipients as the log shows them: all, or as many as fit and the number
// of the others.
func (l DecisionLog) ShowAll(n int, rcpt func(i int) string) string {
	if n == 0 {
		return "" // without memory for the Builder
	}
	var b strings.Builder
	for i := range n {
		shown := "<" + l.show(rcpt(i)) + ">"
		if b.Len()+len(shown) > maxShown {
			fmt.Fprintf(&b, " and %d more", n-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(shown)
	}
	return b.String()
}

// Hide replaces addresses in a text by what the log shows.
func (l DecisionLog) Hide(text string, addresses ...string) string {
	for _, address := range addresses {
		if address != "" && strings.Contains(text, address) {
			text = strings.ReplaceAll(text, address, l.show(address))
		}
		if public := PublicText(address); public != address && strings.Contains(text, public) {
			if shown := l.show(address); shown != address {
				text = strings.ReplaceAll(text, public, shown)
			}
		}
	}
	return text
}

// Refusal returns the reply of a refusal as the log shows it. The reply may have only a part
// of the address, or "?" in it, so that Hide would not find the address: it is written again
// with what the log may show. Refused are the recipients in it; see [Policy.Refusal].
func (l DecisionLog) Refusal(p *Policy, f *verdict.Finding, id string, reply wire.Reply, refused ...string) wire.Reply {
	m := &f.Verdict.Match
	if l.show(f.Address) == f.Address && l.show(m.Sender) == m.Sender || m.IsZero() {
		return reply
	}
	return l.hiddenRefusal(p, *f, id, refused)
}

// hiddenRefusal returns the reply of a refusal for a sender whose address the log hides.
func (l DecisionLog) hiddenRefusal(p *Policy, f verdict.Finding, id string, refused []string) wire.Reply {
	m := &f.Verdict.Match
	f.Address, f.Form, m.Sender = l.show(f.Address), l.show(f.Form), l.show(m.Sender)
	if len(refused) > 0 {
		refused = append([]string{l.show(refused[0])}, refused[1:]...)
	}
	return p.Refusal(&f, id, refused...)
}

// EachMonitored calls do for each entry that only monitors: with the finding about it, and
// with the action without the monitor mode, "" for none.
func EachMonitored(findings []verdict.Finding, do func(f verdict.Finding, phrase string)) {
	for _, f := range findings {
		for _, m := range f.Verdict.Monitored[:min(maxLines, len(f.Verdict.Monitored))] {
			f.Verdict.Match = m
			phrase := ""
			if m.Action != verdict.Accept {
				phrase = m.Action.String()
			}
			do(f, phrase)
		}
	}
}

// WhyNoAnswer returns why the lists could not be asked. The line's text says that they could
// not.
func WhyNoAnswer(err error) string {
	return strings.TrimPrefix(err.Error(), verdict.ErrNoAnswer.Error()+": ")
}
