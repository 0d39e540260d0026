package mailwhy

import (
	"regexp"
	"strings"
)

var (
	anID = regexp.MustCompile(`(?i)^[A-Z2-7]{12}$`)
	inID = regexp.MustCompile(`(?i)\bid[ =:]+([A-Z2-7]{12})\b`) // of a refusal, or of a log line
)

// FindID returns the id of a message in what somebody typed: the id, or a text that has one as a
// refusal has it.
func FindID(text string) (id string, ok bool) {
	text = strings.TrimSpace(text)
	if anID.MatchString(text) {
		return strings.ToUpper(text), true
	}
	if found := inID.FindStringSubmatch(text); found != nil {
		return strings.ToUpper(found[1]), true
	}
	return "", false
}
