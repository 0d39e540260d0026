package door

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
)

// history is a History that keeps its decisions.
type history struct {
	events   []string
	accepted int
}

func (h *history) Accepted(time.Time) bool { h.accepted++; return false }

func (h *history) Record(d verdict.Decision) {
	h.events = append(h.events, fmt.Sprintf("%s %v %v", d.Event, d.Recipients, d.HeaderSenders))
}

// TestHistory: a door tells the history what the log has, and the plain accepts only of messages
// of which it has something else.
func TestHistory(t *testing.T) {
	for _, c := range []struct {
		from, header string
		to           []string
		want         []string
		accepted     int
	}{
		{"a@clean.example", "From: b@clean.example\r\n", []string{"you@example.net"}, nil, 1},
		{"a@clean.example", "From: b@reject.example\r\n", []string{"you@example.net", "me@example.net"},
			[]string{"monitored [] [b@reject.example]", "refused [you@example.net me@example.net] [b@reject.example]"}, 0},
		{"a@reject.example", "", []string{"you@example.net", "abuse@example.net"},
			[]string{"monitored [] []", "refused [you@example.net] []", "accepted [abuse@example.net] []"}, 0},
		{"a@clean.example", "From: nobody\r\n", []string{"you@example.net"},
			[]string{"header field without an address [] []", "accepted [you@example.net] []"}, 0},
	} {
		h := new(history)
		d, _, _ := newDoor(t, false)
		d.cfg.History = h
		m := d.Begin(t.Context(), Envelope{From: c.from})
		for _, to := range c.to {
			m.Recipient(to)
		}
		m.Header([]byte(c.header), nil)
		if a := m.End(); a.Reply.IsZero() {
			m.Passed(false)
		}
		if !slices.Equal(h.events, c.want) || h.accepted != c.accepted {
			t.Errorf("%s, %q: %q and %d plain accepts; want %q, %d", c.from, c.header, h.events, h.accepted, c.want, c.accepted)
		}
	}
}
