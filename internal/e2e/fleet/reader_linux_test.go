package fleet

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

// TestReader adds a gate that only reads to gates with servers: nothing is wrong on any of them
// because of it, and it says what it may not ask.
func TestReader(t *testing.T) {
	t.Parallel()
	setups := initFleet(t, "mx1", "mx2", "mx3")
	gates := startServers(t, setups)
	gates[0].Command(t, 0, "fleet", "member", "dmz1", "--read-only")
	s := harness.Setup{Lists: setups[0].Lists, Files: map[string]string{}}
	for _, file := range []string{"token", "ca.pem"} {
		s.Files["fleet/"+file] = read(t, filepath.Join(gates[0].Dir, "dmz1", file))
	}
	s.Tables = read(t, filepath.Join(gates[0].Dir, "dmz1", "fleet.toml"))
	reader := start(t, dirOf(t, s), "dmz1")
	gates[0].waitAdded(t, "first.example")
	reader.refuses(t, "a@first.example")
	signs := map[time.Time]bool{} // it would renew leases more often than it shows that it lives
	harness.WaitFor(t, "two signs of life of the reader", func() bool {
		members := gates[0].status().Members
		if i := slices.IndexFunc(members, func(p fleet.Presence) bool { return p.Name == "dmz1" && p.ReadOnly }); i >= 0 {
			signs[members[i].Time] = true
		}
		return len(signs) > 1
	})
	for _, g := range gates {
		if f := waitWell(t, g, 4); strings.Contains(told(f), "Violation") {
			t.Errorf("%s says\n%s", g.name, told(f))
		}
	}
	text := strings.Join(strings.Fields(reader.Command(t, 0, "fleet", "status")), " ")
	if !strings.Contains(text, "the credentials of this gate only permit reading, not to see the other members") {
		t.Error(text)
	}
	if text := reader.Command(t, 0, "health"); strings.Contains(text, "WARNING") {
		t.Error(text)
	}
	if text := reader.Command(t, 2, "fleet", "diff"); !strings.Contains(text, fleet.ErrReadOnly.Error()) {
		t.Error(text)
	}
}
