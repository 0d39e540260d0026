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

// DecisionLog writes a line for each decision about a message, alike for every door.
type DecisionLog struct {
	Log *slog.Logger

	// ShowAddress returns an address as the log shows it.
	ShowAddress func(address string) string

	// History takes the decisions, too; nil: there is none.
	History History
}

// Decision is a message, and the sender that a decision is about. The log omits what is
// empty.
type Decision struct {
	ID       string
	Action   string
	Judge    verdict.Judge // whose generation is logged; nil if nobody was asked
	Door     string        // "" for the proxy
	Listener string

	Client        string
	ForwardedFor  string
	Helo          string
	TLS           string
	Authenticated bool

	From      string // the reverse-path, which may be empty
	To        string // as ShowAll returns it
	MessageID string
	QueueID   string // at the mail server that asks

	Finding verdict.Finding
	Reply   string // with no address that ShowAddress hides
	Server  string
	Began   time.Time

	// Parties are for the History; nil: it does not get the decision.
	Parties *Parties
}

// Enabled reports whether lines of a level are written.
func (l DecisionLog) Enabled(level slog.Level) bool {
	return l.Log.Enabled(context.Background(), level)
}

// Write writes a line. The attributes of the message come first, always in the same order.
func (l DecisionLog) Write(level slog.Level, text string, d *Decision, more ...slog.Attr) {
	logged := l.Enabled(level)
	if !logged && d.Parties == nil {
		return
	}
	attrs := make([]slog.Attr, 0, 24)
	str := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	str("id", d.ID)
	str("action", d.Action)
	if d.Judge != nil {
		attrs = append(attrs, slog.Uint64("generation", d.Judge.Generation()))
	}
	str("door", d.Door)
	str("listener", d.Listener)
	str("client", d.Client)
	str("forwarded_for", d.ForwardedFor)
	str("helo", d.Helo)
	str("tls", d.TLS)
	if d.Authenticated {
		attrs = append(attrs, slog.Bool("authenticated", true))
	}
	str("from", "<"+l.show(d.From)+">")
	str("to", d.To)
	str("message_id", d.MessageID)
	str("queue_id", d.QueueID)
	f := &d.Finding
	str("identity", f.Identity)
	switch m := &f.Verdict.Match; {
	case m.Sender != "":
		str("sender", l.show(m.Sender))
		str("by_way_of", l.show(f.Address))
	case f.Identity != verdict.EnvelopeIdentity:
		str("sender", l.show(f.Address))
		str("form", l.show(f.Form))
	}
	if m := &f.Verdict.Match; !m.IsZero() {
		str("list", m.List)
		str("entry", l.showKey(m.Entry))
		str("entry_for", l.showKey(m.For))
		if m.Unconfirmed {
			attrs = append(attrs, slog.Bool("confirmed", false))
		} else if m.File != "" {
			str("source", m.Source())
		}
		str("reason", m.Reason)
		str("note", m.Note)
		str("recipient_policy", f.Policy)
	}
	proof, unproven := proofs(&f.Verdict)
	str("proof", proof)
	str("unproven", unproven)
	str("reply", d.Reply)
	str("server", d.Server)
	for _, a := range more {
		if a.Value.Kind() != slog.KindString || a.Value.String() != "" {
			attrs = append(attrs, a)
		}
	}
	attrs = append(attrs, slog.String("duration", time.Since(d.Began).Round(time.Microsecond).String()))
	// LogAttrs would look up the caller, which the log does not show.
	r := slog.NewRecord(time.Now(), level, text, 0)
	r.AddAttrs(attrs...)
	if logged {
		_ = l.Log.Handler().Handle(context.Background(), r) // a failure does not change the decision
	}
	if d.Parties != nil {
		l.History.Record(Event{r, *d.Parties})
	}
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
// with what the log may show. Refused are the recipients in it; see [Policy.RefusalForSome].
func (l DecisionLog) Refusal(p *Policy, f verdict.Finding, id string, reply wire.Reply, refused ...string) wire.Reply {
	shown, m := l.show(f.Address), &f.Verdict.Match
	if shown == f.Address && l.show(m.Sender) == m.Sender || m.IsZero() {
		return reply
	}
	f.Address, f.Form, m.Sender = shown, l.show(f.Form), l.show(m.Sender)
	if len(refused) == 0 {
		return p.Refusal(f, id)
	}
	return p.RefusalForSome(f, id, append([]string{l.show(refused[0])}, refused[1:]...))
}

// EachMonitored calls do for each entry that only monitors: with the finding about it, and
// with the attribute that says what it would have done without the monitor mode.
func EachMonitored(findings []verdict.Finding, do func(f verdict.Finding, would []slog.Attr)) {
	for _, f := range findings {
		for _, m := range f.Verdict.Monitored[:min(maxLines, len(f.Verdict.Monitored))] {
			f.Verdict.Match = m
			var would []slog.Attr
			if m.Action != verdict.Accept {
				would = []slog.Attr{slog.String("would", m.Action.String())}
			}
			do(f, would)
		}
	}
}

// WhyNoAnswer returns why the lists could not be asked. The line's text says that they could
// not.
func WhyNoAnswer(err error) string {
	return strings.TrimPrefix(err.Error(), verdict.ErrNoAnswer.Error()+": ")
}
