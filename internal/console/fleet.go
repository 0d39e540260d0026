package console

import (
	"net/url"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/admin"
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
	Off     bool
	Seconds int // until it loads again

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
	p := fleetPage{Off: !x.console.inFleet(), Seconds: int(fleetRefresh.Seconds())}
	if !p.Off {
		x.fillFleet(&p)
	}
	return x.render("fleet", view{Title: "Fleet", Nav: fleetPath, Data: p, Refresh: fleetRefresh})
}

// fillFleet fills in the state of the fleet, the members that have problems first.
func (x *exchange) fillFleet(p *fleetPage) {
	now := x.console.Now()
	state, at := x.console.fleet.get(now)
	if state == nil {
		return
	}
	f := *state
	p.Fleet, p.At = &f, at
	p.Members = report.FleetMembers(&f, now)
	bad := len(p.Members) > 0 && p.Members[0].Bad
	p.Well = f.State == admin.FleetConnected && len(f.Problems) == 0 && f.MembersError == "" && !bad
	p.Members, p.MoreMembers = first(p.Members, maxFleetMembers)
	f.Problems, p.MoreProblems = first(f.Problems, maxFleetProblems)
	p.Notes, _ = first(f.Notes, maxFleetProblems)
	for _, l := range report.FleetLists(&f) {
		one := fleetList{FleetList: l}
		if _, err := x.console.list(l.Name); err == nil {
			one.Path = "/lists/" + url.PathEscape(l.Name)
		}
		p.Lists = append(p.Lists, one)
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
