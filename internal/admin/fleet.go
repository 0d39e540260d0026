package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"spamgate/internal/decisions"
	"spamgate/internal/fleet"
	"spamgate/internal/fleetsearch"
)

// This file serves the requests about the fleet, and sends them.

// FleetGate executes the requests about the fleet.
type FleetGate interface {
	// Fleet returns the state of the fleet as the gate sees it. It asks the fleet for its
	// members, for some seconds at most.
	Fleet(context.Context) Fleet

	// FleetJoin ends FleetLeave, and decides about lists that differ.
	FleetJoin(context.Context, Peer, FleetJoinRequest) (FleetJoined, error)

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

	// Why and SudoUser, the user before sudo, are for the audit log.
	Why      string `json:"why,omitempty"`
	SudoUser string `json:"sudo_user,omitempty"`
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

const pathFleet = "/v1/fleet"

// paramGate names the only gate of the fleet that is to be asked.
const paramGate = "gate"

// fleetRoutes returns the routes about the fleet.
func (s *Server) fleetRoutes() []route {
	if s.options.Fleet == nil {
		return nil
	}
	return []route{
		{http.MethodGet, pathFleet, func(w http.ResponseWriter, r *http.Request) {
			answer(w, http.StatusOK, s.options.Fleet.Fleet(r.Context()))
		}},
		{http.MethodPost, pathFleet + "/join", post(s, s.fleetJoin)},
		{http.MethodPost, pathFleet + "/leave", post(s, s.fleetLeave)},
		{http.MethodGet, pathFleet + "/diff", s.fleetDiff},
		{http.MethodGet, pathFleet + "/decisions", s.fleetDecisions},
	}
}

func (s *Server) fleetJoin(r *http.Request, request FleetJoinRequest) (FleetJoined, error) {
	if request.Take && request.Merge {
		return FleetJoined{}, fmt.Errorf("%w: take and merge exclude each other", ErrRequest)
	}
	s.log.Info("fleet join asked for", "by", peerFrom(r), "lists", request.Lists, "take", request.Take, "merge", request.Merge, "why", request.Why)
	return s.options.Fleet.FleetJoin(r.Context(), peerFrom(r), request)
}

func (s *Server) fleetLeave(r *http.Request, _ struct{}) (Fleet, error) {
	s.log.Info("fleet leave asked for", "by", peerFrom(r))
	return s.options.Fleet.FleetLeave(r.Context())
}

func (s *Server) fleetDiff(w http.ResponseWriter, r *http.Request) {
	d, err := s.options.Fleet.FleetDiff(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, d)
}

func (s *Server) fleetDecisions(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	only := v.Get(paramGate)
	v.Del(paramGate)
	q, err := decisions.ParseQuery(v)
	if err != nil {
		s.refuse(w, fmt.Errorf("%w: %w", ErrRequest, err))
		return
	}
	d, err := s.options.Fleet.FleetDecisions(r.Context(), q, only)
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer(w, http.StatusOK, d)
}

// Fleet returns the state of the fleet.
func (c *Client) Fleet(ctx context.Context) (f Fleet, err error) {
	return f, c.call(ctx, http.MethodGet, pathFleet, nil, &f)
}

// FleetJoin makes the gate join the fleet again.
func (c *Client) FleetJoin(ctx context.Context, r FleetJoinRequest) (j FleetJoined, err error) {
	r.SudoUser = sudoUser()
	return j, c.call(ctx, http.MethodPost, pathFleet+"/join", r, &j)
}

// FleetLeave makes the gate leave the fleet.
func (c *Client) FleetLeave(ctx context.Context) (f Fleet, err error) {
	return f, c.call(ctx, http.MethodPost, pathFleet+"/leave", struct{}{}, &f)
}

// FleetDiff returns where members differ.
func (c *Client) FleetDiff(ctx context.Context) (d FleetDiff, err error) {
	return d, c.call(ctx, http.MethodGet, pathFleet+"/diff", nil, &d)
}

// FleetDecisions returns decisions of all members, or of the one that is named.
func (c *Client) FleetDecisions(ctx context.Context, q decisions.Query, only string) (page fleetsearch.Page, err error) {
	v := q.Values()
	if only != "" {
		v.Set(paramGate, only)
	}
	return page, c.call(ctx, http.MethodGet, pathFleet+"/decisions?"+v.Encode(), nil, &page)
}
