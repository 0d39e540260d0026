package console

import (
	"context"
	"net/url"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/report"
)

// fleetPath is the path of the page about the fleet.
const fleetPath = "/fleet"

var fleetRoutes = []route{{"GET", fleetPath, accounts.SeeHealth, (*exchange).fleet}}

// fleetRefresh is how often the page loads again.
const fleetRefresh = 10 * time.Second

// Bounds of the page. The API has all.
const (
	maxFleetProblems = 100
	maxFleetMembers  = 300
)

// fleetPage is what the page about the fleet shows.
type fleetPage struct {
	Off bool

	Well    bool         // nothing is wrong
	Notes   []string     // what is worth knowing all the same
	Fleet   *admin.Fleet // nil: it is being asked
	At      time.Time    // when it was asked
	Members []report.FleetMember
	Lists   []fleetList

	// Those that are not shown.
	MoreProblems, MoreMembers int
}

// fleetList is a shared list.
type fleetList struct {
	report.FleetList
	Path string // "" if it has no page
}

func (x *exchange) fleet() error {
	p := fleetPage{Off: !x.console.inFleet()}
	if !p.Off {
		x.fillFleet(&p)
	}
	return x.render("fleet", view{Title: "Fleet", Nav: fleetPath, Data: p, Refresh: fleetRefresh})
}

// fillFleet fills in the state of the fleet, the members that have problems first.
func (x *exchange) fillFleet(p *fleetPage) {
	now := x.console.Now()
	state, instant := x.console.fleet.get(now)
	if state == nil {
		return
	}
	f := *state
	p.Fleet, p.At = &f, instant
	p.Members = report.FleetMembers(&f, now)
	bad := len(p.Members) > 0 && p.Members[0].Bad
	p.Well = f.State == admin.FleetConnected && len(f.Problems) == 0 && f.MembersError == "" && !bad
	p.Members, p.MoreMembers = first(p.Members, maxFleetMembers)
	f.Problems, p.MoreProblems = first(f.Problems, maxFleetProblems)
	p.Notes, _ = first(f.Notes, maxFleetProblems)
	for _, l := range report.FleetLists(&f) {
		shown := fleetList{FleetList: l}
		if _, err := x.console.list(l.Name); err == nil {
			shown.Path = "/lists/" + url.PathEscape(l.Name)
		}
		p.Lists = append(p.Lists, shown)
	}
}

// first returns the first n values, and the number of the others.
func first[T any](all []T, n int) ([]T, int) {
	n = min(n, len(all))
	return all[:n:n], len(all) - n
}

// ShortSum returns the beginning of the digest.
func (l fleetList) ShortSum() string { return l.SHA256[:min(12, len(l.SHA256))] }

// shownBehind is how many members a list names that are behind.
const shownBehind = 5

// BehindFirst returns the first members that are behind, and BehindMore the number of the others.
func (l fleetList) BehindFirst() []string { return l.Behind[:min(shownBehind, len(l.Behind))] }
func (l fleetList) BehindMore() int       { return len(l.Behind) - len(l.BehindFirst()) }

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

// asked returns a page that says which gates have answered; nil if this gate alone was searched.
func asked(page *fleetsearch.Page) *fleetsearch.Page {
	if len(page.Gates) == 0 && page.Whole() {
		return nil
	}
	return page
}

// messagePath returns the path of the page of a message that a gate had; "" for this one.
func messagePath(id, gate string) string {
	path := "/mail/" + url.PathEscape(id)
	if gate != "" {
		path += "?" + url.Values{"gate": {gate}}.Encode()
	}
	return path
}
