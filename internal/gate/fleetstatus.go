package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/managed"
)

// This file answers questions about the fleet: of commands, and of other gates.

// fleetAnswerTime bounds how long the gate waits for the answers of others.
const fleetAnswerTime = 3 * time.Second

// askLists asks a gate what it serves of the shared lists: a []admin.FleetServes.
const askLists = "lists"

// served returns what the gate serves of the shared lists.
func (f *fleetPart) served() (all []admin.FleetServes) {
	c, set := f.config(), f.store.Set().Stats()
	for _, l := range c.Lists {
		if !l.Fleet {
			continue
		}
		fleetServes := admin.FleetServes{List: l.Name, Problem: "the gate has not read the list yet"}
		for _, stats := range set.Lists {
			if stats.Name != l.Name {
				continue
			}
			fleetServes.SHA256, fleetServes.Entries, fleetServes.Pinned, fleetServes.Problem = stats.Sum, stats.Entries, stats.Pinned != nil, ""
			if stats.Err != nil {
				fleetServes.Problem = stats.Err.Error()
			}
		}
		all = append(all, fleetServes)
	}
	return all
}

// answerLists answers askLists.
func (f *fleetPart) answerLists(context.Context, []byte) ([]byte, error) {
	return json.Marshal(f.served())
}

// report returns what other gates are to know of this one.
func (f *fleetPart) report() json.RawMessage {
	text, err := json.Marshal(admin.FleetReport{Started: f.started, Problem: f.problem(), Lists: f.served()})
	if err != nil {
		return nil
	}
	return text
}

// status returns the state of the fleet as this gate sees it.
func (f *fleetPart) status(ctx context.Context) admin.Fleet {
	m := f.now()
	if m == nil {
		return f.own()
	}
	ctx, cancel := context.WithTimeout(ctx, fleetAnswerTime)
	defer cancel()
	members, err := m.Members(ctx)
	s := f.own() // after what Members has found
	if err != nil {
		s.MembersError = err.Error()
	}
	s.Members = members
	renewOwn(members, &s, f.report())
	s.Problems = append(s.Problems, fleet.Problems(members)...)
	s.Problems = append(s.Problems, reported(members)...)
	s.Notes = append(s.Notes, fleet.Notes(members)...)
	return s
}

// renewOwn replaces what this gate's sign of life said some seconds ago by what is so now: a problem
// may have gone.
func renewOwn(members []fleet.Presence, s *admin.Fleet, report json.RawMessage) {
	own := func(p fleet.Presence) bool { return p.Name == s.Name }
	if i := slices.IndexFunc(members, own); i >= 0 && !slices.ContainsFunc(members[i+1:], own) {
		members[i].Lists, members[i].Clash, members[i].Report = s.Lists, s.Clash, report
	}
}

// reported says what members have told of themselves: that mail cannot pass there, and which
// lists have a version that does not serve there.
func reported(members []fleet.Presence) (problems []string) {
	for _, p := range members {
		r := admin.ParseFleetReport(p.Report)
		if r.Problem != "" {
			problems = append(problems, p.Name+": mail cannot pass there: "+r.Problem)
		}
		for _, l := range r.Lists {
			if l.Problem != "" {
				problems = append(problems, fmt.Sprintf("%s: list %s is not live there: %s", p.Name, l.List, l.Problem))
			}
		}
	}
	return problems
}

// own returns what the gate knows of the fleet without asking anybody.
func (f *fleetPart) own() (s admin.Fleet) {
	f.mu.Lock()
	m, why := f.member, f.why
	f.mu.Unlock()
	defer func() { tellServers(&s, &f.config().Fleet) }()
	s.State = admin.FleetConnected
	if m != nil {
		s.Status, s.Problems = m.Status(), f.pins.problems()
		if !s.Connected {
			s.State = admin.FleetNotConnected
			s.Problems = append(s.Problems, "not connected: "+s.Trouble)
		}
		s.Problems = append(s.Problems, s.Warnings...)
		return s
	}
	s.Name = f.config().Fleet.Name
	switch {
	case errors.Is(why, managed.ErrNoFleet):
		s.State = admin.FleetOff
	case errors.Is(why, errLeft):
		s.State = admin.FleetLeft
	default:
		s.State, s.Trouble = admin.FleetNotConnected, why.Error()
		s.Problems = []string{s.Trouble}
	}
	return s
}

// tellServers says which servers are missing, also that of this machine, and what the fleet lacks.
func tellServers(s *admin.Fleet, c *config.Fleet) {
	if n, missing := s.ConnectedServers(); len(missing) > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("servers connected: %d of %d, without %s", n, len(s.Servers), strings.Join(missing, ", ")))
	}
	if !c.On() {
		return
	}
	if err := serverAnswers(c); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	if lacks := config.FewServers(c.Server.Servers()); lacks != "" && c.Server.Listen != "" {
		s.Notes = append(s.Notes, lacks+"; "+config.ThirdServer)
	}
}

// serverPatience bounds how long the server on this machine may take to accept a connection.
const serverPatience = time.Second

// serverAnswers returns an error if [fleet.server] describes a server, which a program of its own runs on
// this machine, and nothing accepts connections at its address.
func serverAnswers(c *config.Fleet) error {
	if c.Server.Listen == "" {
		return nil
	}
	conn, err := net.DialTimeout("tcp", c.Server.Listen, serverPatience)
	if err != nil {
		return fmt.Errorf("the server of [fleet.server] does not run on this machine: %w; start it: systemctl enable --now spamgate-fleetd (journalctl -u spamgate-fleetd says why it ends)", err)
	}
	return conn.Close()
}

// warnServer logs that the server on this machine does not answer, once.
func (f *fleetPart) warnServer() {
	if err := serverAnswers(&f.config().Fleet); err != nil {
		f.log.Warn("the server of the fleet does not run on this machine", "error", err)
	}
}

// health returns what health says about the fleet; nil: the gate is in none.
func (f *fleetPart) health() *admin.FleetHealth {
	s := f.own()
	if s.State == admin.FleetOff {
		return nil
	}
	h := &admin.FleetHealth{Name: s.Name, State: s.State, Notes: s.Notes}
	h.Problems = append(h.Problems, s.Problems...)
	if s.Clash != "" {
		h.Problems = append(h.Problems, s.Clash)
	}
	for _, l := range s.Lists {
		switch {
		case l.Error != "":
			h.Problems = append(h.Problems, "list "+l.Name+": "+l.Error)
		case l.Sequence == 0:
			h.Problems = append(h.Problems, "list "+l.Name+": this gate has no version of the fleet yet, and serves what it has of its own")
		}
	}
	return h
}

// Fleet implements admin.FleetGate.
func (g *adminHandler) Fleet(ctx context.Context) admin.Fleet { return g.fleet.status(ctx) }

// FleetJoin implements admin.FleetGate.
func (g *adminHandler) FleetJoin(ctx context.Context, by managed.By, r admin.FleetJoinRequest) (admin.FleetJoined, error) {
	c := g.current.Load().config
	if !c.Fleet.On() {
		return admin.FleetJoined{}, admin.ErrNoFleet
	}
	var joined admin.FleetJoined
	left := g.fleet.hasLeft()
	err := g.fleet.join(c)
	if err != nil {
		return joined, err
	}
	m, err := g.fleet.connected(ctx)
	if err != nil {
		return joined, joinedAlone(err, left)
	}
	joined.Lists = decideLists(ctx, m, r, by.Record("fleet join", "", "", r.Why).Person())
	_ = g.store.Rescan(ctx) // what is wrong with lists is in the status
	joined.Fleet = g.fleet.own()
	return joined, nil
}

// joinedAlone adds to the error of a gate that cannot reach the fleet that it belongs to it
// nevertheless. Left says that it had left.
func joinedAlone(err error, left bool) error {
	what := "this gate stays in the fleet"
	if left {
		what = "this gate is in the fleet again"
	}
	return fmt.Errorf("%w; %s, and connects when its servers can be reached; spamgate fleet leave takes it out", err, what)
}

// decideLists does with lists what an admin has decided: with those that the request names, or with all
// that differ from the fleet's.
func decideLists(ctx context.Context, m *fleet.Member, r admin.FleetJoinRequest, author string) (done []admin.FleetJoinedList) {
	lists := r.Lists
	if len(lists) == 0 {
		lists = differing(ctx, m)
	}
	for _, list := range lists {
		fleetJoinedList := admin.FleetJoinedList{List: list}
		var err error
		switch {
		case r.Take:
			fleetJoinedList.Done, err = admin.FleetTook, m.Take(ctx, list)
		case r.Merge:
			fleetJoinedList.Done = admin.FleetMerged
			fleetJoinedList.Added, err = m.Merge(ctx, list, author, r.Why)
		default:
			fleetJoinedList.Done, err = admin.FleetEqual, m.CatchUp(ctx, list)
		}
		if err != nil {
			fleetJoinedList.Done, fleetJoinedList.Error = "", err.Error()
		}
		done = append(done, fleetJoinedList)
	}
	return done
}

// differing returns the lists that differ from the fleet's, after a look at each: that of a gate
// which has just joined may not know yet.
func differing(ctx context.Context, m *fleet.Member) (names []string) {
	for _, l := range m.Status().Lists {
		if m.CatchUp(ctx, l.Name) != nil {
			names = append(names, l.Name)
		}
	}
	return names
}

// joinWait bounds how long a gate that joins waits for the fleet: its servers may elect a leader.
const joinWait = 30 * time.Second

// connected waits until the gate is connected to the fleet.
func (f *fleetPart) connected(ctx context.Context) (*fleet.Member, error) {
	m, err := f.wait(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinWait)
	defer cancel()
	for !m.Status().Connected {
		pause(ctx, fleetLockPoll)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %s", fleet.ErrOffline, m.Status().Trouble)
		}
	}
	return m, nil
}

// FleetLeave implements admin.FleetGate.
func (g *adminHandler) FleetLeave(context.Context) (admin.Fleet, error) {
	c := g.current.Load().config
	if !c.Fleet.On() {
		return admin.Fleet{}, admin.ErrNoFleet
	}
	if err := g.fleet.leave(c); err != nil {
		return admin.Fleet{}, err
	}
	return g.fleet.own(), nil
}

// FleetDiff implements admin.FleetGate.
func (g *adminHandler) FleetDiff(ctx context.Context) (admin.FleetDiff, error) {
	var d admin.FleetDiff
	m, err := g.fleet.wait(ctx)
	if errors.Is(err, managed.ErrNoFleet) {
		err = admin.ErrNoFleet
	}
	if err != nil {
		return d, err
	}
	ctx, cancel := context.WithTimeout(ctx, fleetAnswerTime)
	defer cancel()
	members, err := m.Members(ctx)
	if err != nil {
		return d, err
	}
	r, err := m.Ask(ctx, askLists, nil)
	if err != nil {
		return d, err
	}
	return compareMembers(g.current.Load().config, members, r), nil
}

// compareMembers says where members differ.
func compareMembers(c *config.Config, members []fleet.Presence, r *fleet.Replies) admin.FleetDiff {
	d := admin.FleetDiff{Missing: r.Missing, Errors: map[string]string{}}
	for name, err := range r.Errors {
		d.Errors[name] = err.Error()
	}
	lists := map[string]*admin.FleetListDiff{}
	for _, l := range c.Lists {
		if l.Fleet {
			lists[l.Name] = &admin.FleetListDiff{List: l.Name, Equal: true}
		}
	}
	versions := versionsOf(members)
	for name, answer := range r.Answers {
		var served []admin.FleetServes
		if err := json.Unmarshal(answer, &served); err != nil {
			d.Errors[name] = "its answer is invalid: " + err.Error()
			continue
		}
		for _, s := range served {
			if l := lists[s.List]; l != nil && (len(l.Members) == 0 || l.Members[len(l.Members)-1].Member != name) { // once
				l.Members = append(l.Members, admin.FleetListOn{Member: name, Sequence: versions[name][s.List], FleetServes: s})
			}
		}
	}
	for _, l := range lists {
		slices.SortFunc(l.Members, func(a, b admin.FleetListOn) int { return strings.Compare(a.Member, b.Member) })
		for _, m := range l.Members {
			l.Equal = l.Equal && m.SHA256 == l.Members[0].SHA256 && m.Pinned == l.Members[0].Pinned
		}
		l.Equal = l.Equal && len(l.Members) == len(r.Answers)
		d.Lists = append(d.Lists, *l)
	}
	slices.SortFunc(d.Lists, func(a, b admin.FleetListDiff) int { return strings.Compare(a.List, b.List) })
	return d
}

// versionsOf returns the sequences that members have shown, by member and list.
func versionsOf(members []fleet.Presence) map[string]map[string]uint64 {
	all := map[string]map[string]uint64{}
	for _, p := range members {
		all[p.Name] = map[string]uint64{}
		for _, l := range p.Lists {
			all[p.Name][l.Name] = l.Sequence
		}
	}
	return all
}
