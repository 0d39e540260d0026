package alike

import (
	"regexp"
	"strings"
)

// heard is what a door said about a message.
type heard struct {
	mail  string   // the reply to MAIL, if it refuses
	rcpts []string // the refusal of each recipient, or ""
	end   string   // the refusal of the message, or ""

	got  []string // the recipients who get it
	tags []string // what marks it
}

// passes reports whether a recipient was not refused.
func (h *heard) passes() bool {
	for _, r := range h.rcpts {
		if r == "" {
			return true
		}
	}
	return false
}

var idInReply = regexp.MustCompile(`\bid [A-Z2-7]{12}`)

// refusal returns a reply without its id if it refuses, else "".
func refusal(reply string) string {
	if strings.HasPrefix(reply, "2") || strings.HasPrefix(reply, "3") {
		return ""
	}
	return idInReply.ReplaceAllString(reply, "id ID")
}
