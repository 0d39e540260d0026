package admin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// UnusedFleet says which gates of a fleet were asked for matches.
type UnusedFleet struct {
	Gates   []string          `json:"gates"`             // that have answered
	Missing []string          `json:"missing,omitempty"` // that did not answer
	Errors  map[string]string `json:"errors,omitempty"`  // of gates that could not answer

	// Recent has the gates that know their matches only since a later day.
	Recent map[string]string `json:"recent,omitempty"`
}

// Complete reports whether all gates know their matches: else entries that matched on the
// others count as unused.
func (f *UnusedFleet) Complete() bool {
	return len(f.Missing) == 0 && len(f.Errors) == 0 && len(f.Recent) == 0
}

// Answered names the gates that have answered.
func (f *UnusedFleet) Answered() string { return joined(f.Gates) }

// Lacks says of which gates the matches are not known, in words; "" if those of all are.
func (f *UnusedFleet) Lacks() string {
	var errs, recent, said []string
	for _, name := range slices.Sorted(maps.Keys(f.Errors)) {
		errs = append(errs, fmt.Sprintf("%s could not answer (%s)", name, f.Errors[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Recent)) {
		recent = append(recent, fmt.Sprintf("%s knows its matches only since %s", name, f.Recent[name]))
	}
	if len(f.Missing) > 0 {
		said = append(said, "no answer from "+joined(f.Missing))
	}
	for _, some := range [][]string{errs, recent} {
		if len(some) > 0 {
			said = append(said, joined(some))
		}
	}
	return strings.Join(said, "; ")
}

// maxNamed is how many gates a text names.
const maxNamed = 20

func joined(gates []string) string {
	if more := len(gates) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(gates[:maxNamed], ", "), more)
	}
	return strings.Join(gates, ", ")
}
