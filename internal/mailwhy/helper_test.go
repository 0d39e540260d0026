package mailwhy

import (
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/decisions"
)

// decided returns the decision that the history has of a line of the log: "msg=refused id=… …".
func decided(t *testing.T, line string) *decisions.Decision {
	t.Helper()
	d := &decisions.Decision{Count: 1}
	for line != "" {
		key, rest, ok := strings.Cut(line, "=")
		value, after, _ := strings.Cut(rest, " ")
		if quoted, err := strconv.QuotedPrefix(rest); err == nil && rest[0] == '"' {
			value, _ = strconv.Unquote(quoted)
			after = strings.TrimPrefix(rest[len(quoted):], " ")
		}
		switch line = strings.TrimLeft(after, " "); {
		case !ok:
			t.Fatalf("no line: %s", line)
		case key == "msg":
			d.Event = value
		case key == "to":
			d.Recipients = strings.Split(strings.Trim(value, "<>"), ">,<")
		case key == "from":
			d.Sender = strings.Trim(value, "<>")
		default:
			d.Attrs = append(d.Attrs, decisions.Attr{Key: key, Value: value})
		}
	}
	return d
}
