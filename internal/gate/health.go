package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/version"
	"spamgate/smtpfilter/nexthop"
)

const (
	// reachedLately is how long a MAIL that a next hop accepted proves that it still does.
	reachedLately = 10 * time.Second

	// healthLimit bounds the questions to next hops.
	healthLimit = 5 * time.Second

	// A copy of a list from a URL is too old after oldCopy, or after oldRefreshes times the
	// list's refresh, if that is longer.
	oldCopy      = 24 * time.Hour
	oldRefreshes = 3
)

// Ready implements admin.Gate.
func (g *adminHandler) Ready() (warnings []string, err error) {
	open := g.open.Load()
	if open == nil {
		return nil, errors.New("not listening")
	}
	if problems := open.unreachable(); len(problems) > 0 {
		return nil, errors.New(problems[0])
	}
	for _, h := range g.current.Load().hops {
		if problem, _ := hopProblem(h); problem != "" {
			return nil, errors.New(problem)
		}
		for _, s := range nexthop.States(h.target) {
			warnings = append(warnings, hopWarnings(s)...)
		}
	}
	return warnings, nil
}

// hopWarnings says what may be wrong with a next hop, although mail can pass.
func hopWarnings(s nexthop.State) (warnings []string) {
	if s.Unsure != "" {
		warnings = append(warnings, fmt.Sprintf("next hop %s: it is not known whether mail of clients can pass: it refused the probe MAIL FROM:<> with %q", s.Target, s.Unsure))
	}
	if s.Warning != "" {
		warnings = append(warnings, fmt.Sprintf("next hop %s: %s", s.Target, s.Warning))
	}
	return warnings
}

// mailProblem returns why mail cannot pass, if the gate is sure of that, and else "".
func (g *adminHandler) mailProblem() string {
	open := g.open.Load()
	if open == nil {
		return ""
	}
	if problems := open.unreachable(); len(problems) > 0 {
		return problems[0]
	}
	for _, h := range g.current.Load().hops {
		if problem, sure := hopProblem(h); sure {
			return problem
		}
	}
	return ""
}

// hopProblem says why no mail can go to a next hop; "" if it can. It is not sure if the hop has not
// been asked yet.
func hopProblem(h openHop) (problem string, sure bool) {
	states := nexthop.States(h.target)
	switch {
	case slices.ContainsFunc(states, nexthop.State.MayPass):
		return "", false
	case slices.ContainsFunc(states, func(s nexthop.State) bool { return !s.Known }):
		return "next hop " + h.target.String() + " has not answered yet", false
	}
	return "next hop " + h.target.String() + " is down", true
}

// Health implements admin.Gate.
func (g *adminHandler) Health(ctx context.Context) admin.Health {
	current := g.current.Load()
	h := admin.Health{
		Running: true, Time: time.Now().UTC(), Version: version.Number, PID: os.Getpid(),
		Config: current.config.File, Started: report.TimeOrNil(g.started),
		Mail: g.mailHealth(ctx), Lists: g.listsHealth(), State: g.stateHealth(),
		Decisions: g.history.status(), Fleet: g.fleet.health(),
	}
	if file, err := filepath.Abs(h.Config); err == nil {
		h.Config = file
	}
	h.Healthy = h.Mail.OK && h.Lists.OK && h.State.OK
	return h
}

func (g *adminHandler) mailHealth(ctx context.Context) *admin.MailHealth {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	m := &admin.MailHealth{Listeners: []string{}, NextHops: []admin.NextHopHealth{}}
	if open := g.open.Load(); open != nil {
		m.Listeners, m.Doors = append(m.Listeners, open.listeners...), open.doors
		m.Problems = append(m.Problems, open.unreachable()...)
	} else {
		m.Problems = append(m.Problems, "the gate does not listen: it is stopping, or was handed over")
	}
	hops := g.current.Load().hops
	states := make([][]nexthop.State, len(hops))
	var checks sync.WaitGroup
	for i, h := range hops {
		checks.Go(func() { states[i] = nexthop.Check(ctx, h.target, reachedLately) })
	}
	checks.Wait()
	for _, group := range states {
		passes := false
		var down []string
		for _, s := range group {
			hop := admin.NextHopHealth{Address: s.Target, Up: s.Up, Unknown: s.Unsure != "", Error: s.Unsure,
				Passed: report.TimeOrNil(s.Passed), Recipients: s.Recipients, RecipientsRefused: s.RecipientsRefused}
			m.Warnings = append(m.Warnings, hopWarnings(s)...)
			if s.Err != nil {
				hop.Error = s.Err.Error()
				if errors.Is(s.Err, context.DeadlineExceeded) {
					hop.Error = fmt.Sprintf("next hop %s: no answer within %v", s.Target, healthLimit)
				}
			}
			m.NextHops = append(m.NextHops, hop)
			passes = passes || s.Up || hop.Unknown
			if !s.Up {
				down = append(down, describeDown(hop))
			}
		}
		if !passes {
			m.Problems = append(m.Problems, strings.Join(down, "; "))
		}
	}
	m.Problems = append(m.Problems, loginProblems(g.current.Load().config, hops)...)
	m.OK = len(m.Problems) == 0
	return m
}

// describeDown says why a next hop takes no mail.
func describeDown(hop admin.NextHopHealth) string {
	if hop.Error != "" {
		return hop.Error
	}
	return fmt.Sprintf("next hop %s could not take the last message: see the log", hop.Address)
}

func (g *adminHandler) listsHealth() *admin.ListsHealth {
	status, set := g.Status(), g.store.Set().Stats()
	h := &admin.ListsHealth{Lists: []admin.ListHealth{}}
	for i := range status.Lists {
		l := &status.Lists[i]
		listHealth := admin.ListHealth{
			Name: l.Name, Entries: l.Entries, Held: l.Held, Pinned: l.Pinned != nil,
			Updated: report.LastUpdate(l), Problem: g.copyProblem(l, status.Time),
		}
		if listHealth.Updated != nil {
			age := int64(status.Time.Sub(*listHealth.Updated).Seconds())
			listHealth.Age = &age
		}
		for _, stats := range set.Lists {
			// Nobody wants to see a pinned list change, whatever is on disk.
			if stats.Name == l.Name && stats.Err != nil && (!listHealth.Pinned || !l.LastGood) {
				listHealth.Problem = listProblem(l, stats.Err)
			}
		}
		if l.DNS != nil {
			listHealth.Problem = l.DNS.Problem()
		}
		if listHealth.Problem == "" {
			listHealth.Problem = l.ListsNobody
		}
		if p := l.Published; p != nil && p.Error != "" && listHealth.Problem == "" {
			listHealth.Problem = "others fetch an earlier version: " + p.Error
		}
		listHealth.OK = listHealth.Problem == ""
		if !listHealth.OK {
			h.Problems = append(h.Problems, "list "+l.Name+": "+listHealth.Problem)
		}
		h.Lists = append(h.Lists, listHealth)
	}
	for _, r := range status.Recipients {
		listHealth := admin.ListHealth{Name: r.Name, Entries: r.Entries, Updated: r.Modified, OK: r.Error == ""}
		if !listHealth.OK {
			listHealth.Held, listHealth.Problem = true, "its last good version serves: "+r.Error
			h.Problems = append(h.Problems, r.Name+": "+listHealth.Problem)
		}
		if listHealth.Updated != nil {
			age := int64(status.Time.Sub(*listHealth.Updated).Seconds())
			listHealth.Age = &age
		}
		h.Lists = append(h.Lists, listHealth)
	}
	h.OK = len(h.Problems) == 0
	return h
}

// listProblem says what is wrong with a list whose version on disk is not live.
func listProblem(l *admin.List, err error) string {
	switch {
	case !l.LastGood:
		return fmt.Sprintf("no usable version: %v", err)
	case l.Held:
		return fmt.Sprintf("an update is held, the last good version serves: %v", err)
	}
	return fmt.Sprintf("its last good version serves: %v", err)
}

// refresh returns how often a list is fetched.
func (g *adminHandler) refresh(list string) time.Duration {
	c := g.current.Load().config
	if i := setup.ListIndex(c, list); i >= 0 {
		return c.Lists[i].Refresh
	}
	return 0
}

// copyProblem says that the copy of a list from a URL is too old, if this gate is to fetch it.
func (g *adminHandler) copyProblem(l *admin.List, now time.Time) string {
	if !g.fleet.sources.own(l.Name) {
		return ""
	}
	return copyProblem(l, g.refresh(l.Name), now)
}

// copyProblem says that the copy of a list from a URL is too old, or that its signature has
// expired; "" if neither is so.
func copyProblem(l *admin.List, refresh time.Duration, now time.Time) string {
	if l.URL == "" || l.Pinned != nil || l.Fetch == nil {
		return ""
	}
	why := ""
	if l.Fetch.Error != "" {
		why = ": " + l.Fetch.Error
	}
	switch good := l.Fetch.LastGood; {
	case good == nil && l.Fetch.Failures > 0:
		return "never fetched" + why
	case l.Fetch.Expires != nil && !l.Fetch.Replaced && !now.Before(*l.Fetch.Expires):
		return "the signature of its copy has expired on " + l.Fetch.Expires.Local().Format("2006-01-02 15:04") + why
	case good != nil && now.Sub(*good) > max(oldCopy, oldRefreshes*refresh):
		return "not fetched since " + good.Local().Format("2006-01-02 15:04") + why
	}
	return ""
}

func (g *adminHandler) stateHealth() *admin.StateHealth {
	c := g.current.Load().config
	h := &admin.StateHealth{Dir: c.State.Dir}
	free, err := setup.ProbeState(c)
	if free >= 0 {
		h.Free = &free
	}
	if h.OK = err == nil; !h.OK {
		h.Problem = err.Error()
	}
	return h
}
