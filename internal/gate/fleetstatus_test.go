package gate

import (
	"fmt"
	"log/slog"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
)

// TestServerNotes has servers with a note: it is not a problem, on the gate of the server and on
// others.
func TestServerNotes(t *testing.T) {
	own := admin.Fleet{OwnServer: &fleet.ServerStatus{Servers: 3, Problems: []string{"bad"}, Notes: []string{"odd"}}}
	tellServer(&own)
	if got := fmt.Sprintf("%q %q", own.Problems, own.Notes); got != `["the server in this gate: bad"] ["the server in this gate: odd"]` {
		t.Error(got)
	}
	members := []fleet.Presence{{Name: "mx1", Report: []byte(`{"server":{"notes":["own"]}}`)}, {Name: "mx2", Report: []byte(`{"server":{"notes":["odd"],"problems":["bad"]}}`)}}
	got := saidOfServers(members, "mx1", func(of *fleet.ServerStatus) []string { return of.Notes })
	if fmt.Sprintf("%q", got) != `["mx2: the server in this gate: odd"]` {
		t.Errorf("%q", got)
	}
}

// TestProblemsGo has problems that are over: the own sign of life of some seconds ago says that mail
// cannot pass, and pins were not obeyed of lists that are not shared any more.
func TestProblemsGo(t *testing.T) {
	members := []fleet.Presence{
		{Name: "mx1", Clash: "another process", Report: []byte(`{"problem":"no next hop"}`), Lists: []fleet.ListStatus{{Name: "blocked", Sequence: 1, Error: "disk full"}}},
		{Name: "mx2", Report: []byte(`{"problem":"no disk"}`)},
	}
	s := admin.Fleet{Status: fleet.Status{Name: "mx1", Lists: []fleet.ListStatus{{Name: "blocked", Sequence: 1}}}}
	renewOwn(members, &s, []byte("{}"))
	if got := fmt.Sprintf("%q %q", fleet.Problems(members), reported(members)); got != `[] ["mx2: mail cannot pass there: no disk"]` {
		t.Error(got)
	}

	c := &config.Config{Lists: []config.List{{Name: "blocked", Fleet: true}, {Name: "own"}}}
	f := newFleetPart(func() *config.Config { return c }, slog.New(slog.DiscardHandler))
	for _, list := range []string{"blocked", "own", "gone"} {
		if err := f.notePin(list, fmt.Errorf("no version of %s", list)); err == nil {
			t.Error("the error is gone")
		}
	}
	if got := fmt.Sprintf("%q", f.pinProblems()); got != `["list blocked is pinned in the fleet, but not here: no version of blocked"]` {
		t.Error(got)
	}
}
