package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/fleet"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// FleetMember is a member of a fleet in words.
type FleetMember struct {
	fleet.Presence
	Seen    string // how long ago
	Up      string // for how long it runs; "-" if it has not told
	Clock   string // "right", or how wrong
	Lists   string // which are behind
	Problem string // why mail cannot pass there; "" if nothing is known
	Bad     bool   // something is wrong there
}

// FleetList is a shared list of a fleet in words.
type FleetList struct {
	Name      string
	Sequence  uint64 // the newest that somebody has
	SHA256    string // of that
	Here      string // "equal", or how this gate's version differs
	FetchedBy string // "-" for nobody
	Behind    []string
}

// FleetMembers describes the members of a fleet: first those with whom something is wrong.
func FleetMembers(f *admin.Fleet, now time.Time) []FleetMember {
	newest := newestLists(f)
	all := make([]FleetMember, len(f.Members))
	for i, p := range f.Members {
		if p.Name == f.Name && p.Twins == 0 {
			p.Lists = f.Lists // what it has now, not at its last sign of life
		}
		all[i] = fleetMember(p, newest, now)
	}
	slices.SortStableFunc(all, func(a, b FleetMember) int {
		switch {
		case a.Bad == b.Bad:
			return 0
		case a.Bad:
			return -1
		}
		return 1
	})
	return all
}

func fleetMember(p fleet.Presence, newest map[string]fleet.ListStatus, now time.Time) FleetMember {
	told, behind := admin.ParseFleetReport(p.Report), behindWords(&p, newest)
	m := FleetMember{
		Presence: p, Seen: term.Age(now.Sub(p.Seen)) + " ago", Up: "-", Clock: clockWords(p.Clock), Problem: told.Problem,
		Bad: !p.Well() || len(behind) > 0 || told.Problem != "",
	}
	if !told.Started.IsZero() {
		m.Up = term.Age(now.Sub(told.Started))
	}
	switch {
	case len(behind) > 2:
		m.Lists = text.Count(len(behind), "list", "lists") + " behind"
	case len(behind) > 0:
		m.Lists = strings.Join(behind, ", ")
	default:
		m.Lists = text.Count(len(p.Lists), "list", "lists") + ", none behind"
	}
	return m
}

// FleetLists describes the lists that this gate shares.
func FleetLists(f *admin.Fleet) []FleetList {
	newest := newestLists(f)
	all := make([]FleetList, len(f.Lists))
	for i, l := range f.Lists {
		top := newest[l.Name]
		fleetList := FleetList{Name: l.Name, Sequence: top.Sequence, SHA256: top.SHA256, Here: cmp.Or(differs(l, top), "equal")}
		var fetchers []string
		for _, p := range f.Members {
			pos := slices.IndexFunc(p.Lists, func(on fleet.ListStatus) bool { return on.Name == l.Name })
			if pos < 0 {
				continue
			}
			if p.Lists[pos].Fetches {
				fetchers = append(fetchers, p.Name)
			}
			if differs(p.Lists[pos], top) != "" {
				fleetList.Behind = append(fleetList.Behind, p.Name)
			}
		}
		fleetList.FetchedBy = cmp.Or(strings.Join(fetchers, ", "), "-")
		all[i] = fleetList
	}
	return all
}

// newestLists returns the newest version of each list that somebody has.
func newestLists(f *admin.Fleet) map[string]fleet.ListStatus {
	newest := map[string]fleet.ListStatus{}
	see := func(lists []fleet.ListStatus) {
		for _, l := range lists {
			if known, ok := newest[l.Name]; !ok || l.Sequence > known.Sequence {
				newest[l.Name] = l
			}
		}
	}
	see(f.Lists)
	for _, p := range f.Members {
		see(p.Lists)
	}
	return newest
}

const noVersion = "no version yet"

// differs says how a version of a list differs from the newest; "" if it is that.
func differs(l, newest fleet.ListStatus) string {
	switch {
	case l.Sequence > 0 && l.Sequence < newest.Sequence:
		return "behind by " + text.Number(int(newest.Sequence-l.Sequence))
	case l.Error != "":
		return "differs"
	case l.Sequence == 0:
		return noVersion
	}
	return ""
}

// behindWords says which lists of a member differ.
func behindWords(p *fleet.Presence, newest map[string]fleet.ListStatus) (behind []string) {
	for _, l := range p.Lists {
		switch how := differs(l, newest[l.Name]); how {
		case "":
		case noVersion:
			behind = append(behind, l.Name+" has "+how)
		default:
			behind = append(behind, l.Name+" "+how)
		}
	}
	return behind
}

// clockWords says how wrong a clock is, if it is wrong.
func clockWords(d time.Duration) string {
	if d.Abs() < 2*time.Second {
		return "right"
	}
	return fmt.Sprintf("%+d s", int(d.Round(time.Second).Seconds()))
}
