package mailwhy

import (
	"errors"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/logging"
)

// doors are the doors that log messages, for people.
var doors = map[string]string{"policy_service": "policy service", "milter": "milter"}

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
	if s.r.Msg != "refused" {
		return "no list is named"
	}
	if why := NotAddress(s.r); why != "" {
		return "it is not an address: " + printable(why)
	}
	return "it is not an address" // the log hides the rest
}

// NotAddress says why the envelope sender of a record is not an address. It returns "" if it
// is one, or if the log does not show it.
func NotAddress(r *Record) string {
	from := r.Get("from")
	if from == "" || from == "<>" || logging.Hidden(bare(from)) {
		return ""
	}
	_, err := sender.Parse(bare(from))
	switch {
	case err == nil:
		return ""
	case errors.Is(err, sender.ErrNoDomain):
		return "it has no domain"
	}
	return err.Error()
}
