package gate

import (
	"fmt"
	"testing"

	"spamgate/internal/admin"
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
