package gate

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
)

// TestTellServers has a server that is missing, and one of this machine that does not run.
func TestTellServers(t *testing.T) {
	c := config.Fleet{Servers: config.Addresses{"nats://192.0.2.1:4222"}}
	tell := func(want string) {
		t.Helper()
		s := admin.Fleet{Status: fleet.Status{Servers: []fleet.Server{{Name: "mx1", Connected: true}, {Name: "mx2", Connected: true}, {Name: "mx3"}}}}
		tellServers(&s, &c)
		if got := fmt.Sprintf("%q", s.Problems); !strings.Contains(got, "servers connected: 2 of 3, without mx3") || strings.Contains(got, "systemctl enable --now spamgate-fleetd") != (want != "") {
			t.Error(got)
		}
	}
	tell("")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Server.Listen = l.Addr().String()
	tell("")
	l.Close()
	tell("it does not run")
	c.Servers = nil
	var off admin.Fleet
	if tellServers(&off, &c); len(off.Problems)+len(off.Notes) > 0 {
		t.Errorf("a gate in no fleet: %+v", off)
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
		if err := f.pins.note(list, fmt.Errorf("no version of %s", list)); err == nil {
			t.Error("the error is gone")
		}
	}
	if got := fmt.Sprintf("%q", f.pins.problems()); got != `["list blocked is pinned in the fleet, but not here: no version of blocked"]` {
		t.Error(got)
	}
}
