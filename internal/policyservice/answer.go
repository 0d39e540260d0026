package policyservice

import (
	"strconv"
	"strings"

	"spamgate/internal/door"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// dunno lets mail pass this check.
const dunno = "DUNNO"

// Action returns the action for the first recipient of a message that gets an answer.
func Action(a door.Answer) string {
	if !a.Reply.IsZero() {
		return refusal(a.Reply)
	}
	if text := tag(a); text != "" {
		return text
	}
	return dunno
}

// refusal returns the action that refuses a recipient.
//
// Postfix puts "<recipient>: Recipient address rejected: " before the text. DEFER_IF_PERMIT
// takes no code: the client receives that of Postfix's access_map_defer_code, 450 by default.
func refusal(r wire.Reply) string {
	text := printable(strings.Join(r.Lines, " "))
	if r.Temporary() {
		return "DEFER_IF_PERMIT " + text
	}
	return strconv.Itoa(r.Code) + " " + text
}

// tag returns the action that marks a message, or "".
func tag(a door.Answer) string {
	text := a.DiscardTag
	if text == "" && len(a.Tags) > 0 {
		text = a.Tags[0] // there is one, since there is one sender
	}
	if text == "" {
		return ""
	}
	return "PREPEND " + smtpfilter.TagField + ": " + printable(text)
}

// printable replaces control characters, which could end an answer.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
