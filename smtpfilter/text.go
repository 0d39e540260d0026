package smtpfilter

import (
	"strconv"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// DefaultRejectText is the default template of a refusal. The placeholders stand for the
// sender as the client wrote it, the list's name, the entry's reason, the id in the log, and
// Policy.Contact. An empty reason or contact is omitted, with its brackets or the semicolon
// before it. For a sender that a forwarder wrapped into its own address, "<{sender}>" is
// "<sender> by way of <address>".
const DefaultRejectText = "<{sender}> refused: list {list} ({reason}); id {id}; {contact}"

// maxListText bounds a text from a list that clients receive, in bytes.
const maxListText = 200

// Refusal returns the reply that refuses a sender because of a finding: 550 5.7.1, or 451
// 4.7.1 for Defer (RFC 3463: X.7.1, delivery not authorized). If it does not fit into a reply
// line, the reason is cut, then the forwarder's address is omitted, then the sender cut. It is the zero Reply for other actions.
//
// A finding may count for some recipients only, because of whom the message is refused for all. The
// reply names these, as far as they fit, and says what to do. Nil means that it counts for all.
//
// If the lists could not be asked, it is 451 4.3.0 (RFC 3463: X.3.0, other or undefined mail
// system status) without the sender.
func (p *Policy) Refusal(f *verdict.Finding, id string, only ...string) wire.Reply {
	const advice = ", send it to the others alone"
	if noAnswer(f) || only == nil {
		return p.refusal(f, id, "")
	}
	who := "; not for some of the recipients"
	if len(only) > 0 {
		named := "; not for <" + PublicText(only[0]) + ">"
		if n := len(only) - 1; n > 0 {
			named += " and " + strconv.Itoa(n) + " more"
		}
		if len(named) <= maxListText {
			who = named
		}
	}
	return p.refusal(f, id, who+advice)
}

// refusal returns the reply of a refusal, with a text at its end.
func (p *Policy) refusal(f *verdict.Finding, id, end string) wire.Reply {
	action := f.Verdict.Action
	switch {
	case action != verdict.Reject && action != verdict.Defer:
		return wire.Reply{}
	case noAnswer(f):
		return wire.NewReply(451, "4.3.0 The sender could not be checked now, try again later; id "+id)
	}
	code, enhanced := 550, "5.7.1 "
	if action == verdict.Defer {
		code, enhanced = 451, "4.7.1 "
	}
	maxText := wire.MaxReplyLine - len("550 ") - len("\r\n") - len(end)
	m := &f.Verdict.Match
	sender, by, reason := PublicText(shownSender(f)), "", ""
	if m.Sender != "" {
		sender, by = PublicText(m.Sender), sender
	}
	if m.PublicReason {
		reason = PublicText(m.Reason)
	}
	fill := func() (text string, over int) {
		text = enhanced + p.rejectText(sender, by, m.List, reason, id)
		return text, len(text) - maxText
	}
	text, over := fill()
	if over > 0 {
		reason = reason[:max(0, len(reason)-over)]
		text, over = fill()
	}
	if over > 0 && by != "" {
		by = ""
		text, over = fill()
	}
	if over > 0 {
		sender = sender[:max(0, len(sender)-over)]
		text, _ = fill()
	}
	return wire.NewReply(code, text[:min(len(text), maxText)]+end)
}

// shownSender returns the sender as a refusal names it. A local part without a domain is not
// an address that anyone has written, so it is shown as it is in the header.
func shownSender(f *verdict.Finding) string {
	if f.Form != "" && strings.HasSuffix(f.Address, "@") {
		return f.Form
	}
	return f.Address
}

// These remove an empty reason or contact from the template.
var (
	noReason  = strings.NewReplacer(" ({reason})", "", " {reason}", "", "{reason}", "")
	noContact = strings.NewReplacer("; {contact}", "", " {contact}", "", "{contact}", "")
)

// rejectText fills the template. By is the address that a forwarder wrapped the sender into,
// or "".
func (p *Policy) rejectText(sender, by, list, reason, id string) string {
	t := p.RejectText
	if t == "" {
		t = DefaultRejectText
	}
	if by != "" {
		byWayOf := " by way of "
		if strings.Contains(t, "<{sender}>") {
			byWayOf = "> by way of <"
		}
		sender += byWayOf + by
	}
	if reason == "" {
		t = noReason.Replace(t)
	}
	if p.Contact == "" {
		t = noContact.Replace(t)
	}
	// Making a strings.Replacer takes longer than using it.
	values := [...]string{"{sender}", sender, "{list}", list, "{reason}", reason, "{id}", id, "{contact}", p.Contact}
	text := make([]byte, 0, wire.MaxReplyLine)
	for {
		plain, _, more := strings.Cut(t, "{")
		text = append(text, plain...)
		if !more {
			return string(text)
		}
		t = t[len(plain):]
		i := 0
		for i < len(values) && !strings.HasPrefix(t, values[i]) {
			i += 2
		}
		if i == len(values) { // a plain brace
			text, t = append(text, '{'), t[1:]
			continue
		}
		text, t = append(text, values[i+1]...), t[len(values[i]):]
	}
}

// PublicText returns a text for clients: at most 200 bytes of printable ASCII, with "?" for
// other characters.
func PublicText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), maxListText)]
}
