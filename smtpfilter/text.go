package smtpfilter

import (
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// DefaultRejectText is the default template of a refusal. The placeholders stand for the
// sender as the client wrote it, the list's name, the entry's reason, the id in the log, and
// Policy.Contact. An empty reason or contact is omitted, with its brackets or the semicolon
// before it.
const DefaultRejectText = "<{sender}> refused: list {list} ({reason}); id {id}; {contact}"

// maxListText bounds a text from a list that clients receive, in bytes.
const maxListText = 200

// refusal returns the reply that refuses a sender: 550 5.7.1, or 451 4.7.1 for Defer (RFC
// 3463: X.7.1, delivery not authorized). If it does not fit into a reply line, the reason is
// cut, then the sender.
//
// If the lists could not be asked, it is 451 4.3.0 (RFC 3463: X.3.0, other or undefined mail
// system status) without the sender.
func (p *Policy) refusal(action verdict.Action, f verdict.Finding, id string) wire.Reply {
	if f.NoAnswer() {
		return wire.NewReply(451, "4.3.0 The sender could not be checked now, try again later; id "+id)
	}
	code, enhanced := 550, "5.7.1 "
	if action == verdict.Defer {
		code, enhanced = 451, "4.7.1 "
	}
	const maxText = wire.MaxReplyLine - len("550 ") - len("\r\n")
	sender, list, reason := PublicText(shownSender(f)), f.Verdict.Match.List, ""
	if m := f.Verdict.Match; m.PublicReason {
		reason = PublicText(m.Reason)
	}
	text := enhanced + p.rejectText(sender, list, reason, id)
	if over := len(text) - maxText; over > 0 {
		reason = reason[:max(0, len(reason)-over)]
		text = enhanced + p.rejectText(sender, list, reason, id)
	}
	if over := len(text) - maxText; over > 0 {
		sender = sender[:max(0, len(sender)-over)]
		text = enhanced + p.rejectText(sender, list, reason, id)
	}
	return wire.NewReply(code, text[:min(len(text), maxText)])
}

// shownSender returns the sender as a refusal names it: a local part without a domain, which
// nobody has written as an address, as it stands in the header.
func shownSender(f verdict.Finding) string {
	if f.Form != "" && strings.HasSuffix(f.Address, "@") {
		return f.Form
	}
	return f.Address
}

// Refusal returns the reply that refuses a sender because of a finding, or the zero Reply.
func (p *Policy) Refusal(f verdict.Finding, id string) wire.Reply {
	switch f.Verdict.Action {
	case verdict.Reject, verdict.Defer:
		return p.refusal(f.Verdict.Action, f, id)
	}
	return wire.Reply{}
}

// These remove an empty reason or contact from the template.
var (
	noReason  = strings.NewReplacer(" ({reason})", "", " {reason}", "", "{reason}", "")
	noContact = strings.NewReplacer("; {contact}", "", " {contact}", "", "{contact}", "")
)

// rejectText fills the template.
func (p *Policy) rejectText(sender, list, reason, id string) string {
	t := p.RejectText
	if t == "" {
		t = DefaultRejectText
	}
	if reason == "" {
		t = noReason.Replace(t)
	}
	if p.Contact == "" {
		t = noContact.Replace(t)
	}
	// Making a strings.Replacer takes longer than using it.
	text := make([]byte, 0, wire.MaxReplyLine)
	for {
		plain, rest, more := strings.Cut(t, "{")
		text = append(text, plain...)
		if !more {
			return string(text)
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			name = ""
		}
		t = after
		switch name {
		case "sender":
			text = append(text, sender...)
		case "list":
			text = append(text, list...)
		case "reason":
			text = append(text, reason...)
		case "id":
			text = append(text, id...)
		case "contact":
			text = append(text, p.Contact...)
		default: // a plain brace
			text = append(text, '{')
			t = rest
		}
	}
}

// PublicText returns a text for clients: at most 200 bytes of printable ASCII, with "?" for
// other characters.
func PublicText(s string) string {
	if len(s) <= maxListText && isPublic(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if b.Len() == maxListText {
			break
		}
		if r < ' ' || r > '~' {
			r = '?'
		}
		b.WriteByte(byte(r))
	}
	return b.String()
}

// isPublic reports whether s is printable ASCII.
func isPublic(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
