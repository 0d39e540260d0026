package mailwhy

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
)

// decided returns the decision that the history has of a line of the log: "msg=refused id=… …".
func decided(t *testing.T, line string) *decisions.Decision {
	t.Helper()
	var r slog.Record
	var to []string
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
			r.Message = value
		case key == "to":
			to = strings.Split(strings.Trim(value, "<>"), ">,<")
		default:
			r.AddAttrs(slog.String(key, value))
		}
	}
	r.Time = time.Date(2026, 11, 22, 15, 39, 26, 0, time.UTC)
	return decisions.FromLog(r, to, nil)
}
