package mailwhy

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"spamgate/internal/decisions"
)

// FromDecision returns the record of a decision in the history, as if it had been read in the log.
// It has all recipients, which a line of the log may not have.
func FromDecision(d *decisions.Decision) *Record {
	r := &Record{Time: d.Time, Level: d.Level, Msg: d.Event, count: d.Count, last: d.Last}
	for _, a := range d.LogAttrs() {
		r.attrs = append(r.attrs, attr{a.Key, a.Value})
	}
	return r
}

// Add adds a decision of the history to a search, as [Search.Read] adds a line of a log. The same
// decision in a log that is read later does not count.
func (s *Search) Add(d *decisions.Decision, gate string) {
	r := FromDecision(d)
	r.kept, r.gate = true, gate
	if d.Count > 1 {
		s.repeated = append(s.repeated, r)
	}
	s.record(r, false)
}

// inHistory reports whether the history has told a line of the log already: as a record of the
// same message, or as one of the decisions that a record stands for.
func (s *Search) inHistory(r *Record) bool {
	if r.kept {
		return false
	}
	if m := s.byID[r.Get("id")]; m != nil && slices.ContainsFunc(m.Records, func(k *Record) bool { return k.kept && k.tells(r) && k.when(r.Time, 0) }) {
		return true
	}
	return slices.ContainsFunc(s.repeated, func(k *Record) bool { return k.tells(r) && k.when(r.Time, k.last.Sub(k.Time)) })
}

// tells reports whether a record of the history and a line of the log are about the same, apart
// from the time and the message.
func (r *Record) tells(line *Record) bool {
	if r.Msg != line.Msg || first(Recipients(r)) != first(Recipients(line)) || host(r.Get("client")) != host(line.Get("client")) {
		return false
	}
	return !slices.ContainsFunc([]string{"action", "from", "list", "entry", "sender"}, func(key string) bool { return r.Get(key) != line.Get(key) })
}

// when reports whether the time of a line is that of the record, or up to so much later. A log
// may have milliseconds only.
func (r *Record) when(line time.Time, later time.Duration) bool {
	after := line.Sub(r.Time.Truncate(time.Millisecond))
	return after >= 0 && after < later+time.Millisecond
}

func first(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return of[0]
}

// host returns a client's address without its port.
func host(client string) string {
	if at, err := netip.ParseAddrPort(client); err == nil {
		return at.Addr().String()
	}
	return client
}

// repeated says that a record of the history stands for several decisions that are alike.
func (r *Record) repeated() string {
	if r.count < 2 {
		return ""
	}
	return fmt.Sprintf(" That happened %d times, with an id each, until %s.", r.count, r.last.Local().Format(time.DateTime))
}
