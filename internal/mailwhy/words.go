// Package mailwhy says in words what happened to a message, as the history of decisions has it.
package mailwhy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
)

// Explain says in words what a decision means. The text is one line, and printable.
func Explain(d *decisions.Decision) string {
	s := say{d, map[string]string{}}
	for _, a := range d.LogAttrs() {
		s.attrs[a.Key] = a.Value
	}
	if explain, ok := explanations[d.Event]; ok {
		return explain(s) + s.repeated()
	}
	return Printable(d.Event) + "." + s.why() + s.told() + s.repeated()
}

// explanations has the words for each event (docs/log.md).
var explanations = map[string]func(say) string{
	"accepted": func(s say) string {
		if s.get("door") != "" {
			return s.listedAnyway() + s.passedAtDoor()
		}
		return s.listedAnyway() + "The next hop" + s.server() + " has the message, and answered " + s.quoted("next_hop") + "."
	},
	"refused": func(s say) string {
		what := "The gate refused the sender "
		if s.get("action") == verdict.Defer.String() {
			what = "The gate asked the client to come again later because of the sender "
		}
		return what + s.sender() + ": " + s.entry() + "." + s.policy() + s.proof() + s.refusedFor() + s.told()
	},
	"monitored": func(s say) string {
		text := "Only logged: " + s.entry() + ", which is the sender " + s.sender()
		if phrase := s.get("would"); phrase != "" {
			name := ""
			if policy := s.get("recipient_policy"); policy != "" {
				name = ", unless the recipient policy " + policy + " says otherwise"
			}
			return text + ". In the mode enforce the action would be " + phrase + name + "."
		}
		return text + ". The list only observes."
	},
	"discarded": func(s say) string {
		return "The gate accepted the message and dropped it, because of the sender " + s.sender() + ": " + s.entry() + "." + s.proof() + " Nobody has it."
	},
	"relay denied": func(s say) string {
		return "The gate refused the recipient " + s.get("to") + ": the domain is not in recipient_domains, and the client has not logged in." + s.told()
	},
	"recipient unknown": func(s say) string {
		return "The gate refused the recipient " + s.get("to") + ", who is not in valid_recipients." + s.told()
	},
	"refused by the next hop": func(s say) string {
		return s.listedAnyway() + "The next hop" + s.server() + " itself refused " + s.what() + ", with " + s.quoted("next_hop") +
			", and the client got that. The reason is in that server's log."
	},
	"delivered to some recipients": func(s say) string {
		return "The next hop has the message for " + s.get("to") + ", not for the others, so the client sends it again." + s.told()
	},
	"other recipients go first": func(s say) string {
		return "The recipient " + s.get("to") + " has to wait for a later retry, since others of the message go first." + s.told()
	},
	"delivered before": func(s say) string {
		return s.get("to") + " had the message already from an earlier try. The gate did not deliver it again." + s.told()
	},
	"some recipients have the message": func(s say) string {
		return "Some of the recipients have the message already from an earlier try, so the client has to send it to all of them again." + s.told()
	},
	"lists cannot be asked": func(s say) string {
		return "The gate could not look the sender up, since the index of a list is damaged. It is made again, and the client comes again." + s.why() + s.told()
	},
	"message refused": func(s say) string {
		text := "The gate refused the form of the message, not the sender."
		if s.get("door") == "" {
			text += " The next hop does not have it."
		}
		return text + s.why() + s.told()
	},
	"given up by the client": func(s say) string {
		return "The client began anew before it had sent the whole message. The next hop does not have it."
	},
	"next hop failed": func(s say) string {
		return "The next hop" + s.server() + " could not be reached, broke off, or takes no mail now." + s.why() + s.told()
	},
	"no answer from the next hop": func(s say) string {
		return "The next hop" + s.server() + " got the whole message and did not answer: it may have the message or not. If it has, " +
			"the message arrives twice." + s.why() + s.told()
	},
	"message not stored": func(s say) string {
		return "The gate could not store the message in the Maildir." + s.why() + s.told()
	},
	"unfinished message not removed": func(s say) string {
		return "The gate could not remove an unfinished message from the Maildir." + s.why()
	},
	"header address not understood": func(s say) string {
		return "The gate could not look up the sender " + s.sender() + ". That stops no message." + s.why()
	},
	"header field without an address": func(s say) string {
		return "The field " + s.get("identity") + " has no address. That stops no message."
	},
	"command refused": func(s say) string {
		return "The gate refused the command " + s.quoted("command") + ", which is invalid or uses what is not offered." + s.told()
	},
	"who has the message is not on disk: if the gate restarts before the client comes again, some get it twice": func(s say) string {
		return "The gate could not note on disk which recipients have the message. If it restarts before the client comes again, some get it twice." + s.why()
	},
}

// say makes parts of sentences of a decision.
type say struct {
	*decisions.Decision
	attrs map[string]string // of its log line
}

// get returns the value of an attribute as it can be printed.
func (s say) get(key string) string { return Printable(s.attrs[key]) }

// Printable escapes a text that strangers wrote, so that it is one line without effect.
func Printable(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func (s say) quoted(key string) string {
	if v := s.get(key); v != "" {
		return `"` + v + `"`
	}
	return "nothing"
}

// sender returns the sender that the decision is about.
func (s say) sender() string {
	address, identity := s.get("sender"), s.get("identity")
	by := s.get("by_way_of")
	if by != "" {
		address = "<" + address + "> by way of <" + by + ">"
	}
	if identity == "" || identity == verdict.EnvelopeIdentity {
		if by != "" {
			return address
		}
		return s.get("from")
	}
	where := " in the field " + identity
	if form := s.get("form"); form != "" {
		return address + " (servers may read " + form + where + " so)"
	}
	return address + where
}

// entry returns the entry that decided, with its place.
func (s say) entry() string {
	if s.get("list") == "" {
		return s.unlisted()
	}
	text := "list " + s.get("list") + " has " + s.get("entry")
	if to := s.get("entry_for"); to != "" {
		text += " for " + to
	}
	if reason := s.get("reason"); reason != "" {
		text += " (" + reason + ")"
	}
	if source := s.get("source"); source != "" {
		text += " at " + source
	}
	if s.get("confirmed") == "false" {
		text += " as far as the filter alone says (confirm = false)"
	}
	if note := s.get("note"); note != "" {
		text += ", private note: " + note
	}
	return text
}

// proof says what became of the question whether the sender is forged, if an allow list's
// entry depends on it.
func (s say) proof() string {
	proof, unproven := s.get("proof"), s.get("unproven")
	switch {
	case unproven != "":
		return " The entry of list " + unproven + " lets only a proven sender pass, and this one is not (" + proof + ")."
	case proof == "":
		return ""
	case s.get("door") == "policy_service" && proven(proof) == "":
		return " A policy service does not see signatures, so that the sender counts as proven (" + proof + ")."
	case proven(proof) != "":
		return " The sender is proven (" + proven(proof) + ")."
	}
	return " Whether the sender is proven was asked (" + proof + ")."
}

// proven returns the part of a proof's text that proves the sender, "" if none does.
func proven(proof string) string {
	for part := range strings.SplitSeq(proof, "; ") {
		if strings.HasPrefix(part, "spf: pass ") || strings.HasPrefix(part, "dkim: a valid signature of ") {
			return part
		}
	}
	return ""
}

// policy names the policy of the recipients because of which they have the mail, or not.
func (s say) policy() string {
	if policy := s.get("recipient_policy"); policy != "" {
		return " The recipient policy " + policy + " counts for the recipient."
	}
	return ""
}

// refusedFor says which recipients decided for all.
func (s say) refusedFor() string {
	to := s.get("refused_for")
	switch {
	case to != "" && s.get("action") == verdict.Tag.String():
		return ` That holds for ` + to + `, who would not get it alone: it is marked for all (mixed_headers = "tag").`
	case to != "":
		return " That holds for " + to + ", and so nobody got it: sent to the others alone it passes."
	}
	return ""
}

// exempted says why a listed sender passes.
var exempted = map[string]string{
	"recipient":     "the accepted recipients are exempt from lists",
	"no_recipient":  "the mail server named no recipient, so that none could be refused",
	"client":        "the client is exempt from lists",
	"authenticated": "the client has logged in",
}

// listedAnyway says that a sender was listed and passed, or was not looked up.
func (s say) listedAnyway() string {
	why := exempted[s.get("exempt")]
	switch {
	case s.get("list") != "" && why != "":
		return "The sender " + s.sender() + " is listed (" + s.entry() + ") and passed: " + why + "." + s.proof() + " "
	case s.get("tagged_ahead") != "":
		return "The gate had to mark the message (" + s.get("tagged_ahead") + ") before it could verify its signature, and cannot take that back. " +
			s.letPass()
	case s.get("list") != "" && s.get("action") == verdict.Tag.String():
		return "The gate marked the message because of the sender " + s.sender() + ": " + s.entry() + "." + s.policy() + s.proof() + s.refusedFor() + " "
	case s.get("list") != "":
		return s.letPass()
	case why != "":
		return "The sender was not looked up: " + why + ". "
	}
	return ""
}

// letPass says which entry let the sender pass.
func (s say) letPass() string {
	if s.get("list") == "" {
		return ""
	}
	return "An entry let the sender " + s.sender() + " pass: " + s.entry() + "." + s.proof() + " "
}

// server names the next hop, if there are several.
func (s say) server() string {
	if server := s.get("server"); server != "" {
		return " " + server
	}
	return ""
}

// what returns what a next hop refused: a recipient, or the message.
func (s say) what() string {
	if s.get("size") != "" {
		return "the message"
	}
	return "the recipient " + s.get("to")
}

func (s say) why() string {
	if err := s.get("error"); err != "" {
		return " Why: " + err + "."
	}
	return ""
}

func (s say) told() string {
	if reply := s.get("reply"); reply != "" {
		return ` The client was told "` + reply + `".`
	}
	return ""
}

// repeated says that a row of the history stands for several decisions that are alike.
func (s say) repeated() string {
	if s.Count < 2 {
		return ""
	}
	return fmt.Sprintf(" That happened %d times, with an id each, until %s.", s.Count, s.Last.Local().Format(time.DateTime))
}
