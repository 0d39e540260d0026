package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"spamgate/internal/decisions"
	"spamgate/internal/fleet"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/managed"
)

// This file has what can be asked about the fleet.

// FleetGate executes the requests about the fleet.
type FleetGate interface {
	// Fleet returns the state of the fleet as the gate sees it. It asks the fleet for its
	// members, for some seconds at most.
	Fleet(context.Context) Fleet

	// FleetJoin ends FleetLeave, and decides about lists that differ.
	FleetJoin(context.Context, managed.By, FleetJoinRequest) (FleetJoined, error)

	// FleetLeave takes the gate out of the fleet, until FleetJoin.
	FleetLeave(context.Context) (Fleet, error)

	// FleetDiff asks all members what they serve.
	FleetDiff(context.Context) (FleetDiff, error)

	// FleetDecisions searches the histories of all members, or of the one that is named. What
	// this gate has found is there without the others, too.
	FleetDecisions(ctx context.Context, q decisions.Query, only string) (fleetsearch.Page, error)
}

// States of a Fleet.
const (
	FleetOff          = "off"           // [fleet] names no servers
	FleetLeft         = "left"          // an admin has taken the gate out of the fleet
	FleetConnected    = "connected"     // the gate can use the fleet
	FleetNotConnected = "not connected" // it cannot: see Trouble
)

// Fleet is the state of a fleet, as one gate sees it.
type Fleet struct {
	State string `json:"state"`
	fleet.Status
	Members      []fleet.Presence `json:"members,omitempty"`
	MembersError string           `json:"members_error,omitempty"` // why they are not known
	Problems     []string         `json:"problems,omitempty"`
	Notes        []string         `json:"notes,omitempty"` // what is worth knowing, although nothing is wrong
}

// FleetReport is what a gate tells the others of itself: fleet.Presence.Report.
type FleetReport struct {
	Started time.Time `json:"started,omitzero"` // its process

	// Problem says why mail cannot pass, as far as the gate knows; "" if it can.
	Problem string `json:"problem,omitempty"`

	Lists []FleetServes `json:"lists,omitempty"`
}

// ParseFleetReport parses the report of another gate. A damaged one says nothing.
func ParseFleetReport(text json.RawMessage) (r FleetReport) {
	if len(text) > 0 && json.Unmarshal(text, &r) != nil {
		return FleetReport{}
	}
	return r
}

// FleetServes is what a gate serves of a shared list.
type FleetServes struct {
	List    string `json:"list"`
	SHA256  string `json:"sha256,omitempty"` // of the live version: blocklist.ListStats.Sum
	Entries int    `json:"entries"`
	Pinned  bool   `json:"pinned,omitempty"`
	Problem string `json:"problem,omitempty"` // why the version on disk is not live
}

// FleetJoinRequest asks a gate to join the fleet again, and to decide about lists that differ
// from the fleet's: to take the fleet's version, or to add the own entries that it lacks.
type FleetJoinRequest struct {
	Lists []string `json:"lists,omitempty"` // empty: all that differ
	Take  bool     `json:"take,omitempty"`
	Merge bool     `json:"merge,omitempty"`

	Why string `json:"why,omitempty"` // for the audit log
	Caller
}

// What FleetJoin did with a list.
const (
	FleetTook   = "took the fleet's version"
	FleetMerged = "merged"
	FleetEqual  = "equal"
)

// FleetJoined is the result of a FleetJoinRequest.
type FleetJoined struct {
	Lists []FleetJoinedList `json:"lists,omitempty"`
	Fleet Fleet             `json:"fleet"`
}

// FleetJoinedList is what was done with a list.
type FleetJoinedList struct {
	List  string `json:"list"`
	Done  string `json:"done,omitempty"`
	Added int    `json:"added,omitempty"` // entries or accounts, by FleetMerged
	Error string `json:"error,omitempty"`
}

// FleetDiff says where members differ.
type FleetDiff struct {
	Lists   []FleetListDiff   `json:"lists"`
	Missing []string          `json:"missing,omitempty"` // members that did not answer
	Errors  map[string]string `json:"errors,omitempty"`  // of members that could not answer
}

// FleetListDiff compares a list on all members.
type FleetListDiff struct {
	List    string        `json:"list"`
	Equal   bool          `json:"equal"`
	Members []FleetListOn `json:"members"`
}

// FleetListOn is a list on one member.
type FleetListOn struct {
	Member   string `json:"member"`
	Sequence uint64 `json:"sequence,omitempty"` // as the member has shown lately
	FleetServes
}

func (c *call) fleet(None) (Fleet, error) { return c.options.Fleet.Fleet(c.ctx), nil }

func (c *call) fleetJoin(request FleetJoinRequest) (FleetJoined, error) {
	if request.Take && request.Merge {
		return FleetJoined{}, fmt.Errorf("%w: take and merge exclude each other", ErrRequest)
	}
	c.log.Info("fleet join asked for", "by", c.peer, "lists", request.Lists, "take", request.Take, "merge", request.Merge, "why", request.Why)
	return c.options.Fleet.FleetJoin(c.ctx, c.by(request.Caller), request)
}

func (c *call) fleetLeave(None) (Fleet, error) {
	c.log.Info("fleet leave asked for", "by", c.peer)
	return c.options.Fleet.FleetLeave(c.ctx)
}

func (c *call) fleetDiff(None) (FleetDiff, error) { return c.options.Fleet.FleetDiff(c.ctx) }

func (c *call) fleetDecisions(s search) (page fleetsearch.Page, err error) {
	gate := s.take(paramGate)
	q, err := s.query()
	if err != nil {
		return page, err
	}
	return c.options.Fleet.FleetDecisions(c.ctx, q, gate)
}

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
	var errs, recent, lines []string
	for _, name := range slices.Sorted(maps.Keys(f.Errors)) {
		errs = append(errs, fmt.Sprintf("%s could not answer (%s)", name, f.Errors[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Recent)) {
		recent = append(recent, fmt.Sprintf("%s knows its matches only since %s", name, f.Recent[name]))
	}
	if len(f.Missing) > 0 {
		lines = append(lines, "no answer from "+joined(f.Missing))
	}
	for _, some := range [][]string{errs, recent} {
		if len(some) > 0 {
			lines = append(lines, joined(some))
		}
	}
	return strings.Join(lines, "; ")
}

// maxNamed is how many gates a text names.
const maxNamed = 20

func joined(gates []string) string {
	if more := len(gates) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(gates[:maxNamed], ", "), more)
	}
	return strings.Join(gates, ", ")
}
