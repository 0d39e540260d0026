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
	// LogAttrs would look up the caller, which the log does not show.
	r := slog.NewRecord(time.Now(), level, text, 0)
	l.addAttrs(&r, d, more)
	if logged {
		_ = l.Log.Handler().Handle(context.Background(), r) // a failure does not change the decision
	}
	if d.Parties != nil {
		l.record(&r, d.Parties)
	}
}

// record gives a decision to the History.
func (l DecisionLog) record(r *slog.Record, p *Parties) { l.History.Record(Event{*r, *p}) }

// addAttrs adds the attributes of a line. Their array is on the stack, and the log's handler must
// not be called above it.
func (l DecisionLog) addAttrs(r *slog.Record, d *Decision, more []slog.Attr) {
	attrs := make([]slog.Attr, 0, 24)
	attrs = l.appendMessage(attrs, d)
	attrs = l.appendFinding(attrs, &d.Finding)
	attrs = appendText(attrs, "reply", d.Reply)
	attrs = appendText(attrs, "server", d.Server)
	for i := range more {
		if v := more[i].Value; v.Kind() != slog.KindString || v.String() != "" {
			attrs = append(attrs, more[i])
		}
	}
	attrs = append(attrs, slog.String("duration", time.Since(d.Began).Round(time.Microsecond).String()))
	r.AddAttrs(attrs...)
}

// appendMessage appends the attributes of the message that a decision is about.
func (l DecisionLog) appendMessage(attrs []slog.Attr, d *Decision) []slog.Attr {
	attrs = appendText(attrs, "id", d.ID)
	attrs = appendText(attrs, "action", d.Action)
	if d.Judge != nil {
		attrs = append(attrs, slog.Uint64("generation", d.Judge.Generation()))
	}
	attrs = appendText(attrs, "door", d.Door)
	attrs = appendText(attrs, "listener", d.Listener)
	attrs = appendText(attrs, "client", d.Client)
	attrs = appendText(attrs, "forwarded_for", d.ForwardedFor)
	attrs = appendText(attrs, "helo", d.Helo)
	attrs = appendText(attrs, "tls", d.TLS)
	if d.Authenticated {
		attrs = append(attrs, slog.Bool("authenticated", true))
	}
	attrs = appendText(attrs, "from", "<"+l.show(d.From)+">")
	attrs = appendText(attrs, "to", d.To)
	attrs = appendText(attrs, "message_id", d.MessageID)
	return appendText(attrs, "queue_id", d.QueueID)
}

// appendFinding appends the attributes of a finding.
func (l DecisionLog) appendFinding(attrs []slog.Attr, f *verdict.Finding) []slog.Attr {
	attrs = appendText(attrs, "identity", f.Identity)
	m := &f.Verdict.Match
	switch {
	case m.Sender != "":
		attrs = appendText(attrs, "sender", l.show(m.Sender))
		attrs = appendText(attrs, "by_way_of", l.show(f.Address))
	case f.Identity != verdict.EnvelopeIdentity:
		attrs = appendText(attrs, "sender", l.show(f.Address))
		attrs = appendText(attrs, "form", l.show(f.Form))
	}
	if !m.IsZero() {
		attrs = appendText(attrs, "list", m.List)
		attrs = appendText(attrs, "entry", l.showKey(m.Entry))
		attrs = appendText(attrs, "entry_for", l.showKey(m.For))
		if m.Unconfirmed {
			attrs = append(attrs, slog.Bool("confirmed", false))
		} else if m.File != "" {
			attrs = appendText(attrs, "source", m.Source())
		}
		attrs = appendText(attrs, "reason", m.Reason)
		attrs = appendText(attrs, "note", m.Note)
		attrs = appendText(attrs, "recipient_policy", f.Policy)
	}
	proof, unproven := proofs(&f.Verdict)
	attrs = appendText(attrs, "proof", proof)
	return appendText(attrs, "unproven", unproven)
}

// appendText appends an attribute, unless it is empty.
func appendText(attrs []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(key, value))
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
