package console

import (
	"context"
	"maps"
	"net/url"
	"slices"

	"spamgate/internal/accounts"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
)

// gateName returns the name of this gate in its fleet.
func (c *Console) gateName() string { return c.Config().Fleet.Name }

// gateOptions returns the gates whose mail can be searched. Chosen is in the URL.
func gateOptions(own, chosen string) []option {
	all := []option{{"", "all gates"}, {own, "this gate only"}}
	if chosen != "" && chosen != own && fleetsearch.ValidName(chosen) {
		all = append(all, option{chosen, "only " + chosen})
	}
	return all
}

// isHere reports whether a search of one gate, or of all, has the mail of this gate.
func (x *exchange) isHere(gate string) bool {
	return gate == "" || x.console.inFleet() && gate == x.console.gateName()
}

// historyOff reports whether there is no history to search for the mail of a gate, or of all: those
// of other gates of the fleet can be searched although this one keeps none.
func (x *exchange) historyOff(gate string) bool {
	return !x.console.keepsHistory() && (!x.console.inFleet() || gate == x.console.gateName())
}

// checkGate returns why a gate cannot be asked, or nil.
func (x *exchange) checkGate(gate string) error {
	switch {
	case gate == "":
		return nil
	case !x.console.inFleet():
		return invalid("This gate is in no fleet: leave the field gate out.")
	case !fleetsearch.ValidName(gate):
		return invalid("The field gate is not the name of a gate.")
	}
	return nil
}

// findDecisions searches the history of this gate, and in a fleet those of all gates, or of one.
func (x *exchange) findDecisions(q decisions.Query, gate string) (fleetsearch.Page, error) {
	if err := x.checkGate(gate); err != nil {
		return fleetsearch.Page{}, err
	}
	if x.console.inFleet() && gate != x.console.gateName() {
		return x.findFleet(x.r.Context(), q, gate)
	}
	if !x.console.keepsHistory() {
		return fleetsearch.Page{}, errNoHistory
	}
	page, err := x.console.History.Find(x.r.Context(), q)
	return fleetsearch.Alone(page), err
}

// findFleet searches the histories of all gates of the fleet, or of one. An account that does not
// see the gate's health learns who has not answered, and not why.
func (x *exchange) findFleet(ctx context.Context, q decisions.Query, gate string) (fleetsearch.Page, error) {
	if q.Limit == 0 {
		q.Limit = usualDecisions
	}
	page, err := x.console.Fleet.FleetDecisions(ctx, q, gate)
	if err != nil || x.who.May(accounts.SeeHealth) {
		return page, err
	}
	page.Fault = ""
	for name := range page.Errors {
		page.Errors[name] = "tell the server's admin"
	}
	if page.FleetError != "" {
		page.FleetError = "tell the server's admin"
	}
	return page, nil
}

// usualDecisions is how many decisions a page has if a request does not say it.
const usualDecisions = 100

// asked says which gates a search has asked.
type asked struct {
	Gates    []string
	Missing  []string
	Failed   []failedGate
	NotAsked string // why no other gate was asked
}

// failedGate is a gate that could not answer.
type failedGate struct{ Name, Why string }

// asked returns who has answered a search; nil if it was one of this gate alone.
func (x *exchange) asked(page *fleetsearch.Page) *asked {
	a := &asked{Gates: page.Gates, Missing: page.Missing, NotAsked: page.FleetError}
	for _, name := range slices.Sorted(maps.Keys(page.Errors)) {
		a.Failed = append(a.Failed, failedGate{name, page.Errors[name]})
	}
	if len(a.Gates) == 0 && page.Whole() {
		return nil
	}
	return a
}

// Named returns the gates that answered, if these are few enough to be named.
func (a *asked) Named() []string {
	if len(a.Gates) > 10 {
		return nil
	}
	return a.Gates
}

// messagePath returns the path of the page of a message that a gate had; "" for this one.
func messagePath(id, gate string) string {
	path := "/mail/" + url.PathEscape(id)
	if gate != "" {
		path += "?" + url.Values{"gate": {gate}}.Encode()
	}
	return path
}
