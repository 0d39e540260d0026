package mailwhy

import (
	"fmt"
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

// MessagesOf returns the messages of decisions, the oldest first, with their records in the order
// of time.
func MessagesOf(all []decisions.Decision) []*Message {
	s := NewSearch(Query{Most: len(all)})
	for i := range all {
		m := s.message(all[i].ID)
		m.Whole = true
		s.add(m, FromDecision(&all[i]))
	}
	return s.Result().Messages
}

// repeated says that a record of the history stands for several decisions that are alike.
func (r *Record) repeated() string {
	if r.count < 2 {
		return ""
	}
	return fmt.Sprintf(" That happened %d times, with an id each, until %s.", r.count, r.last.Local().Format(time.DateTime))
}
