package smtpfilter

import (
	"log/slog"
	"slices"
	"time"

	"spamgate/blocklist/verdict"
)

// History takes the decisions about messages, whatever the level of the log is. Its methods are
// safe for concurrent use, and never wait.
type History interface {
	// Accepted counts an accepted message of senders that no list has, of which nothing else
	// was recorded. It reports whether Record wants the decision all the same, and then it
	// does not count it.
	Accepted(at time.Time) bool

	// Record takes a decision.
	Record(Event)
}

// Event is a decision as a History takes it. It shows addresses as the log does.
type Event struct {
	slog.Record // the line of the log

	Parties
}

// Parties are the addresses of a decision, of which a line of the log has only some.
type Parties struct {
	Recipients    []string // the first MaxParties, without brackets
	HeaderSenders []string // the first MaxParties, each once, without the reverse-path

	MoreRecipients int // the number of the others
}

// MaxParties bounds the recipients and the header senders of an Event.
const MaxParties = 1000

// Wanted reports whether the History takes a decision. It is asked once for each decision. Before
// says whether the History has taken another one about the message, so that it gets the rest.
func (l DecisionLog) Wanted(text string, f *verdict.Finding, before bool) bool {
	switch {
	case l.History == nil:
		return false
	case text == verdict.EventAccepted && f.Verdict.Match.IsZero() && !before:
		return l.History.Accepted(time.Now())
	}
	return true
}

// Parties returns the addresses of a decision: n recipients, and the senders in the header of a
// message with this reverse-path.
func (l DecisionLog) Parties(n int, rcpt func(i int) string, from string, header []verdict.HeaderSender) *Parties {
	p := &Parties{MoreRecipients: max(0, n-MaxParties)}
	if n > 0 {
		p.Recipients = make([]string, min(n, MaxParties))
	}
	for i := range p.Recipients {
		p.Recipients[i] = l.show(rcpt(i))
	}
	seen := map[string]bool{}
	for _, s := range header {
		if s.Address == from || len(p.HeaderSenders) == MaxParties {
			continue
		}
		if shown := l.show(s.Address); !seen[shown] {
			seen[shown] = true
			p.HeaderSenders = append(p.HeaderSenders, shown)
		}
	}
	p.HeaderSenders = slices.Clip(p.HeaderSenders)
	return p
}
