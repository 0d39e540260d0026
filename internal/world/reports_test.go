package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/fleet"
	"spamgate/internal/report"
)

// TestReports plays states of lists, and of the members of a fleet, as status shows them.
//
// What is watched: a list that is held, not up to date or not loaded is shown as that, and no other is;
// a member that is behind, or cannot pass mail, is shown as bad, and before those that are well.
func TestReports(t *testing.T) {
	run(t, &part{few: 300, draw: drawReports, play: playReports})
}

// A reportMove is a list of this gate, or a member of the fleet.
type reportMove struct {
	member           bool
	failed, good     bool // the list: its last look has failed, and a version serves
	held, pinned     bool
	sequences        []uint64 // the member: of each list
	differs          int      // which list has an error; others: none
	problem          bool     // mail cannot pass there
	expired, invalid int
}

func (m *reportMove) String() string { return fmt.Sprintf("%+v", *m) }

func drawReports(r *rand.Rand) []move {
	moves := make([]move, 2+r.IntN(8))
	for i := range moves {
		moves[i] = &reportMove{
			member: r.IntN(2) == 0, failed: r.IntN(2) == 0, good: r.IntN(3) > 0, held: r.IntN(2) == 0, pinned: r.IntN(3) == 0,
			sequences: []uint64{4 + r.Uint64N(2), uint64(r.IntN(3))}, differs: r.IntN(6), problem: r.IntN(6) == 0, expired: r.IntN(3), invalid: r.IntN(2),
		}
	}
	return moves
}

func playReports(w *world, moves []move) error {
	var stats blocklist.SetStats
	f := &admin.Fleet{Status: fleet.Status{Name: "here"}}
	states := map[string]string{} // by list; "": it is up to date
	now := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	newest := make([]uint64, 2)
	var members []*reportMove
	for i, m := range moves {
		m := m.(*reportMove)
		if m.member {
			members = append(members, m)
			for k, s := range m.sequences {
				newest[k] = max(newest[k], s)
			}
			continue
		}
		l := blocklist.ListStats{Name: fmt.Sprintf("list%d", i), LastGood: m.good, Held: m.held, Expired: m.expired, Invalid: m.invalid}
		if m.pinned {
			l.Pinned = &blocklist.Pin{}
		}
		if m.failed {
			l.Err = errors.New("too many entries are gone")
			states[l.Name] = map[bool]string{true: "NOT UP TO DATE", false: "NOT LOADED"}[m.good]
			if m.good && m.held {
				states[l.Name] = "HELD"
			}
		}
		stats.Lists = append(stats.Lists, l)
	}
	if err := checkListReport(w, stats, states); err != nil {
		return err
	}
	bad := map[string]bool{}
	for i, m := range members {
		p := fleet.Presence{Name: fmt.Sprintf("gate%d", i), Seen: now}
		for k, s := range m.sequences {
			l := fleet.ListStatus{Name: fmt.Sprintf("shared%d", k), Sequence: s}
			if m.differs == k {
				l.Error = "it is another one"
			}
			bad[p.Name] = bad[p.Name] || s == 0 || s < newest[k] || l.Error != "" || m.problem
			p.Lists = append(p.Lists, l)
		}
		if m.problem {
			p.Report = must(json.Marshal(admin.FleetReport{Problem: "its next hop is down"}))
		}
		f.Members = append(f.Members, p)
	}
	return checkFleetReport(w, f, bad, now)
}

// checkListReport compares what is shown of each list with what it is.
func checkListReport(w *world, stats blocklist.SetStats, states map[string]string) error {
	var text strings.Builder
	report.PrintLists(&text, stats)
	lines := strings.Split(text.String(), "\n")
	for i, l := range stats.Lists {
		line := lines[i]
		w.tell("%s is %q, pinned %t", l.Name, states[l.Name], l.Pinned != nil)
		for _, state := range []string{"HELD", "NOT UP TO DATE", "NOT LOADED"} {
			if strings.Contains(line, state) != (states[l.Name] == state) {
				return fmt.Errorf("%s is %q, and status says: %s", l.Name, states[l.Name], line)
			}
		}
		if !strings.Contains(line, l.Name) || strings.Contains(line, "PINNED") != (l.Pinned != nil) {
			return fmt.Errorf("%s is pinned: %t, and status says: %s", l.Name, l.Pinned != nil, line)
		}
	}
	return nil
}

// checkFleetReport compares what is shown of each member with what it is.
func checkFleetReport(w *world, f *admin.Fleet, bad map[string]bool, now time.Time) error {
	well := false
	for _, m := range report.FleetMembers(f, now) {
		w.tell("%s: bad %t, lists %s", m.Name, m.Bad, m.Lists)
		if m.Bad != bad[m.Name] {
			return fmt.Errorf("%s is bad: %t, and is shown as %t: lists %s, problem %q", m.Name, bad[m.Name], m.Bad, m.Lists, m.Problem)
		}
		if well = well || !m.Bad; m.Bad && well {
			return fmt.Errorf("%s is bad, and stands after one that is well", m.Name)
		}
	}
	return nil
}
