package smtpfilter

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/verdict"
)

// receivedField returns the Received field of a message (RFC 5321, section 4.4). It names no
// recipient, since that would reveal blind copies.
func receivedField(helo string, client netip.Addr, by, proto, id string, when time.Time) string {
	literal := addressLiteral(client)
	name := helo
	if !validHelo(helo) {
		name = literal
	}
	return fmt.Sprintf("Received: from %s (%s)\r\n\tby %s with %s id %s;\r\n\t%s\r\n",
		name, literal, by, proto, id, when.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
}

// protocol returns the word after "with" in the Received field (RFC 3848, RFC 6531).
func (s *session) protocol(t *transaction) string {
	if t.client.Proto != "ESMTP" {
		return t.client.Proto
	}
	word := "ESMTP"
	if t.utf8 {
		word = "UTF8SMTP"
	}
	if s.conn.TLS() != nil {
		word += "S"
	}
	if s.conn.Authenticated() {
		word += "A"
	}
	return word
}

// countReceived counts the Received fields of a header section, also those with white space
// before the colon, which is obsolete (RFC 5322, section 4.5).
func countReceived(section []byte) int {
	const name = "received"
	n := 0
	for line := range bytes.Lines(section) {
		if len(line) > len(name) && line[0]|0x20 == 'r' && bytes.EqualFold(line[:len(name)], []byte(name)) &&
			bytes.HasPrefix(bytes.TrimLeft(line[len(name):], " \t"), []byte(":")) {
			n++
		}
	}
	return n
}

// addressLiteral returns an address literal (RFC 5321, section 4.1.3).
func addressLiteral(a netip.Addr) string {
	switch a = a.Unmap(); {
	case a.Is4():
		return "[" + a.String() + "]"
	case a.Is6():
		return "[IPv6:" + a.WithZone("").String() + "]"
	default:
		return "[0.0.0.0]"
	}
}

// validHelo reports whether a client's name may be part of a Received field: a domain or an
// address literal. Another text could look like another part of the field.
func validHelo(s string) bool {
	inner := s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		inner = s[1 : len(s)-1]
	}
	for i := range len(inner) {
		c := inner[i]
		ok := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '.' || c == '-' || c == '_'
		if !ok && (c != ':' || inner == s) {
			return false
		}
	}
	return inner != ""
}

// maxTags bounds the tag fields of one message.
const maxTags = 10

// TagField is the name of the field that tags a message from a listed sender.
const TagField = "X-Spamgate"

// Tags returns the content of a message's tag field because of one sender, if it has one.
func Tags(v *verdict.Verdict) []string { return addTag(nil, v) }

// addTag adds the tag of a verdict to those of a message, if it asks for one.
func addTag(tags []string, v *verdict.Verdict) []string {
	if v.Action == verdict.Tag {
		return putTag(tags, v)
	}
	return tags
}

// putTag adds the tag of a verdict, whatever its action, if it is new.
func putTag(tags []string, v *verdict.Verdict) []string {
	if len(tags) == maxTags {
		return tags
	}
	if tag := TagOf(v); !slices.Contains(tags, tag) {
		tags = append(tags, tag)
	}
	return tags
}

// proofPending ends the tag of a sender who may yet be proven.
const proofPending = "; proof=pending"

// TagOf returns the content of a tag field because of a verdict, whatever its action. It says so
// if a proof, which comes with the rest of the message, may yet clear the sender.
func TagOf(v *verdict.Verdict) string {
	tag := tagValue(&v.Match)
	if v.Pending {
		tag += proofPending
	}
	return tag
}

// tagValue returns the content of the field that tags a message.
func tagValue(m *verdict.Match) string {
	reason := ""
	if m.PublicReason && m.Reason != "" {
		reason = "; reason=" + PublicText(m.Reason)
	}
	return "listed; list=" + m.List + reason
}

// continuationField is added before a message whose first line begins with white space.
// Otherwise that line would continue the gate's Received field with any text.
const continuationField = "X-Spamgate-Note: the message began with this white space:\r\n"
