package check

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
	"spamgate/internal/logging"
	"spamgate/smtpfilter/wire"
)

// past is a message of the history.
type past struct {
	*decisions.Decision
	facts      verdict.Message
	recipients []verdict.Recipient // that the listener takes now

	headerSeen bool
	header     []string // senders
}

// isHidden reports whether the history does not show an address of a decision.
func isHidden(d *decisions.Decision) bool {
	return logging.Hidden(d.Sender) || slices.ContainsFunc(d.HeaderSenders, logging.Hidden) || slices.ContainsFunc(d.Recipients, logging.Hidden)
}

// newPast returns a message of the history. Ok is false if there is no sender to judge, or
// nobody would take the message now whoever sends it.
func (k *session) newPast(d *decisions.Decision) (p past, ok bool) {
	from := strings.TrimSuffix(d.Sender, nullSender)
	if _, err := sender.Parse(from); err != nil {
		return past{}, false
	}
	p = past{Decision: d, facts: verdict.Message{ReversePath: from, Helo: d.Helo}, header: d.HeaderSenders}
	p.facts.Client, _ = netip.ParseAddrPort(d.Client)
	for _, text := range d.Recipients {
		rcpt, err := wire.ParsePath(text)
		if recipient := verdict.ParseRecipient(rcpt.String()); err == nil && k.policy.TakesRecipient(recipient) && k.policy.KnowsRecipient(recipient) {
			p.recipients = append(p.recipients, recipient)
		}
	}
	// The history has no sender of the header that is the reverse-path.
	p.headerSeen = len(p.header) > 0 || d.MessageID != "" || d.Size > 0
	if p.headerSeen && len(p.header) == 0 && from != "" {
		p.header = []string{from}
	}
	return p, len(p.recipients) > 0 || len(d.Recipients) == 0
}

const nullSender = "<>"

// judgePast judges a message of the history with the lists of a View, as far as the history
// shows its senders.
func (k *session) judgePast(ctx context.Context, v *blocklist.View, p *past) (*judgedMessage, error) {
	m := &judgedMessage{headerSeen: p.headerSeen, messageIn: messageIn{judged: true}}
	m.Policy, m.Message = &k.policy, p.facts
	remembering := func() verdict.Judge { return judge.NewAsking(judge.New(v), remembered{p.Decision}, nil) }
	m.begin(ctx, remembering, p.Attr("authenticated") == "true", p.recipients)
	for _, g := range m.groups {
		if err := g.class.Envelope.Err; err != nil {
			return nil, fmt.Errorf("%s: %w", p.Sender, err)
		}
		if g.refused || !m.JudgesHeader(g.class) {
			continue
		}
		for _, address := range p.header {
			f := noFinding(identityOf(p.Decision, address), address)
			f.Verdict, f.Err = m.Judge.Judge(ctx, &m.Message, verdict.Query{Stage: verdict.Header, Address: address, For: g.class.For})
			if f.NoAnswer() {
				return nil, fmt.Errorf("%s: %w", address, f.Err)
			}
			g.class.Apply(&f)
			g.class.Header = append(g.class.Header, f)
		}
	}
	m.end = *m.Decide()
	m.decide()
	return m, nil
}

// identityOf returns the header field that names a sender, as far as a decision tells it.
func identityOf(d *decisions.Decision, address string) string {
	if identity := d.Attr("identity"); identity != verdict.EnvelopeIdentity && d.Attr("sender") == address {
		return identity
	}
	return "header"
}

// remembered answers for a list in DNS what it has said about the message then. Others say
// nothing.
type remembered struct{ *decisions.Decision }

// Ask implements judge.Asker.
func (remembered) Ask(string, ...string) {}

// Skipped implements judge.Asker.
func (remembered) Skipped(string) {}

// Result implements judge.Asker.
func (d remembered) Result(_ context.Context, list, domain string) blocklist.Answer {
	if d.List == list && (domain == d.Entry || strings.HasSuffix(domain, "."+d.Entry)) {
		return blocklist.Answer{Name: d.Entry, Reason: d.Reason}
	}
	return blocklist.Answer{}
}

// recipientAction is what becomes of a message for a recipient, "" if none is known.
type recipientAction struct {
	recipient string
	action    verdict.Action
}

// actions returns what becomes of the message for each recipient, in alphabetical order.
func (m *judgedMessage) actions() (all []recipientAction) {
	for _, g := range m.groups {
		action := m.actionFor(g)
		if g.recipients == nil {
			all = append(all, recipientAction{"", action})
		}
		for _, r := range g.recipients {
			all = append(all, recipientAction{r, action})
		}
	}
	slices.SortFunc(all, func(a, b recipientAction) int { return strings.Compare(a.recipient, b.recipient) })
	return all
}

// actionFor returns what becomes of the message for the recipients of a group.
func (m *judgedMessage) actionFor(g *group) verdict.Action {
	switch {
	case g.refused:
		return m.outcome(g).Verdict.Action
	case m.end.Refuses():
		return m.end.Finding.Verdict.Action
	case g.class.Dropped:
		return verdict.Discard
	case len(m.end.Tags) > 0:
		return verdict.Tag
	}
	return verdict.Accept
}

// refuses reports whether a message is not delivered because of an action.
func refuses(a verdict.Action) bool { return a > verdict.Tag }
