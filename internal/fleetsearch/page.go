package fleetsearch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"spamgate/internal/decisions"
)

// Page is what gates have found: the newest decisions first.
type Page struct {
	Decisions []Decision `json:"decisions"`

	// Next continues after the last one; "" if there are no more.
	Next decisions.Cursor `json:"next,omitempty"`

	// Incomplete says that the time for the search was over before the page was full: Next
	// continues it.
	Incomplete bool `json:"incomplete,omitempty"`

	// Reach is the time of the oldest decision in a history; nil if all are empty.
	Reach *time.Time `json:"reaches_back_to,omitempty"`

	// Fault says why a history stands still: its newest decisions are missing.
	Fault string `json:"stands_still,omitempty"`

	// Gates are those of the fleet that have answered, Missing those that have not in time,
	// and Errors why others could not.
	Gates   []string          `json:"gates,omitempty"`
	Missing []string          `json:"missing,omitempty"`
	Errors  map[string]string `json:"errors,omitempty"`

	// FleetError says why no other gate was asked.
	FleetError string `json:"fleet_error,omitempty"`
}

// Decision is a decision and the gate that made it.
type Decision struct {
	// Gate is the name of the gate in its fleet; "" if only one history was searched.
	Gate string `json:"gate,omitempty"`

	decisions.Decision
}

// Alone returns the page of one history as a Page.
func Alone(page decisions.Page) Page {
	p := Page{Decisions: make([]Decision, len(page.Decisions)), Next: page.Next, Incomplete: page.Incomplete, Reach: page.Reach, Fault: page.Fault}
	for i, d := range page.Decisions {
		p.Decisions[i] = Decision{"", d}
	}
	return p
}

// Whole reports whether all gates have answered.
func (p *Page) Whole() bool { return len(p.Missing) == 0 && len(p.Errors) == 0 && p.FleetError == "" }

// maxNamed bounds the gates that are named for having answered.
const maxNamed = 10

// Answered says which gates of the fleet have answered; "" for a search in one history.
func (p *Page) Answered() string {
	var lines []string
	switch {
	case len(p.Gates) > maxNamed:
		lines = append(lines, fmt.Sprintf("%d gates answered", len(p.Gates)))
	case len(p.Gates) > 0:
		lines = append(lines, strings.Join(p.Gates, ", ")+" answered")
	}
	if len(p.Missing) > 0 {
		lines = append(lines, "NO ANSWER from "+strings.Join(p.Missing, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Errors)) {
		lines = append(lines, name+" could not: "+p.Errors[name])
	}
	if p.FleetError != "" {
		lines = append(lines, "no other gate was asked: "+p.FleetError)
	}
	if lines == nil {
		return ""
	}
	return "Asked the fleet: " + strings.Join(lines, "; ") + "."
}
