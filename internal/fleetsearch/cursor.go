package fleetsearch

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"spamgate/internal/decisions"
)

// cursor is a place in the histories of all gates.
type cursor struct {
	// At has the place in the history of each gate that has answered; "": it has nothing more.
	At map[string]decisions.Cursor `json:"at"`

	// Until, if not 0, bounds the decisions of other gates, in nanoseconds since 1970: they
	// were not asked before, or did not answer.
	Until int64 `json:"until,omitempty"`
}

// cursorPrefix begins a cursor, and none of a single history.
const cursorPrefix = "f."

// MaxCursor bounds the Next of a Page: some hundred gates.
const MaxCursor = 16 << 10

func (c cursor) encode() decisions.Cursor {
	text, _ := json.Marshal(c) // strings and a number
	return decisions.Cursor(cursorPrefix + base64.RawURLEncoding.EncodeToString(text))
}

// parseCursor parses a cursor. That of "" begins with the newest decisions.
func parseCursor(text decisions.Cursor) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	rest, ok := strings.CutPrefix(string(text), cursorPrefix)
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if !ok || err != nil || len(text) > MaxCursor || json.Unmarshal(b, &c) != nil {
		return cursor{}, decisions.ErrCursor
	}
	for _, pos := range c.At {
		if err := pos.Check(); err != nil {
			return cursor{}, err
		}
	}
	return c, nil
}

// query returns a query of all histories as that of one gate. It reports false if that has nothing
// more.
func (c cursor) query(q decisions.Query, name string) (decisions.Query, bool) {
	cursor, known := c.At[name]
	q.Before = cursor
	if until := time.Unix(0, c.Until); !known && c.Until != 0 && (q.Until.IsZero() || until.Before(q.Until)) {
		q.Until = until
	}
	return q, !known || cursor != ""
}
