package decisions

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	history "spamgate/internal/decisions"
)

// found is what was found, here or in the whole fleet.
type found struct {
	Decisions []row `json:"decisions"`

	Next       history.Cursor `json:"next,omitempty"`
	Incomplete bool           `json:"incomplete,omitempty"`
	Reach      *time.Time     `json:"reaches_back_to,omitempty"`

	Fault string `json:"stands_still,omitempty"` // why a history stands still

	Gates   []string          `json:"gates,omitempty"`   // of the fleet that have answered
	Missing []string          `json:"missing,omitempty"` // that have not
	Errors  map[string]string `json:"errors,omitempty"`  // that could not

	more bool // some gate has more
}

// row is a decision and the gate of the fleet that made it.
type row struct {
	Gate string `json:"gate,omitempty"`
	history.Decision
}

// find returns the newest decisions that match, at most so many: of all gates of the fleet, or of
// this one.
func (s *session) find(q history.Query, last int, here bool) (*found, error) {
	if q.Limit = last; !here && s.config.Fleet.On() && s.history.Fleet != nil {
		d, err := s.history.Fleet(s.ctx, q)
		switch {
		case err == nil:
			return ofFleet(&d, last), nil
		case !errors.Is(err, admin.ErrNoFleet) && !cli.IsTooOld(err):
			return nil, errors.Join(err, errors.New("--here searches this gate's own history"))
		}
	}
	page, err := s.findHere(q, last)
	if err != nil {
		return nil, err
	}
	f := &found{Decisions: []row{}, Next: page.Next, Incomplete: page.Incomplete, Reach: page.Reach, Fault: page.Fault, more: page.Next != ""}
	for _, d := range page.Decisions {
		f.Decisions = append(f.Decisions, row{"", d})
	}
	return f, nil
}

// ofFleet merges what gates have found, the newest first.
func ofFleet(d *admin.FleetDecisions, limit int) *found {
	f := &found{Decisions: []row{}, Gates: slices.Sorted(maps.Keys(d.Members)), Missing: d.Missing, Errors: d.Errors}
	for _, name := range f.Gates {
		page := d.Members[name]
		for _, decision := range page.Decisions {
			f.Decisions = append(f.Decisions, row{name, decision})
		}
		f.Incomplete = f.Incomplete || page.Incomplete
		f.more = f.more || page.Next != ""
		if page.Fault != "" {
			f.Fault = name + ": " + page.Fault
		}
		if page.Reach != nil && (f.Reach == nil || page.Reach.Before(*f.Reach)) {
			f.Reach = page.Reach
		}
	}
	slices.SortStableFunc(f.Decisions, func(a, b row) int { return b.Time.Compare(a.Time) })
	if len(f.Decisions) > limit {
		f.Decisions, f.more = f.Decisions[:limit], true
	}
	return f
}

// answered says which gates of the fleet have answered; "" for a search in one history.
func (f *found) answered() string {
	if f.Gates == nil && len(f.Missing) == 0 && len(f.Errors) == 0 {
		return ""
	}
	said := "Asked the fleet: " + strings.Join(f.Gates, ", ") + " answered"
	if len(f.Missing) > 0 {
		said += "; NO ANSWER from " + strings.Join(f.Missing, ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Errors)) {
		said += "; " + name + " could not: " + f.Errors[name]
	}
	return said + "."
}
