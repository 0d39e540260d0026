package mailwhy

import (
	"errors"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
	"spamgate/internal/logging"
)

// passedAtDoor says that the gate let a message pass that a mail server had asked it about.
// The server may refuse the message all the same.
func (s say) passedAtDoor() string {
	what, it, answer := "message", "it", ""
	if s.get("door") == "policy_service" {
		if s.get("to") != "" {
			what, it = "recipient", "the message"
		}
		if s.get("action") != verdict.Tag.String() {
			answer = " (DUNNO)"
		}
	}
	text := "The gate let the " + what + " pass" + answer + ". What became of " + it + " is in the mail server's log"
	if id := s.get("queue_id"); id != "" {
		text += ", there as " + id
	}
	return text + "."
}

// unlisted says why a sender was refused that no list has.
func (s say) unlisted() string {
	if s.Event != "refused" {
		return "no list is named"
	}
	if why := NotAddress(s.Decision); why != "" {
		return "it is not an address: " + Printable(why)
	}
	return "it is not an address" // the history hides the rest
}

// NotAddress says why the envelope sender of a decision is not an address. It returns "" if it
// is one, or if the history does not show it.
func NotAddress(d *decisions.Decision) string {
	if d.Sender == "" || d.Sender == "<>" || logging.Hidden(d.Sender) {
		return ""
	}
	_, err := sender.Parse(d.Sender)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, sender.ErrNoDomain):
		return "it has no domain"
	}
	return err.Error()
}
