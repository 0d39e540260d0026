package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

// fleetLists are harness.ManagedLists with the first one shared.
var fleetLists = strings.Replace(harness.ManagedLists, "managed = true\n", "managed = true\nfleet = true\n", 1)

// inFleet makes the gate of a site a member of a fleet.
func inFleet(n *harness.NATS, s harness.Setup) harness.Setup {
	s.Tables += fmt.Sprintf("[fleet]\nname = \"mx1\"\nservers = [%q]\n", "nats://"+n.Addr)
	s.Lists = strings.Replace(s.Lists, harness.ManagedLists, fleetLists, 1)
	return s
}

// waitFleet waits until the gate shares its list.
func (s *site) waitFleet(t testing.TB) {
	t.Helper()
	harness.WaitFor(t, "the gate to join the fleet", func() bool {
		var f admin.Fleet
		s.api.Must(t, 200, "GET", "/api/v1/fleet", nil, &f)
		return f.State == admin.FleetConnected && len(f.Members) > 0 &&
			slices.ContainsFunc(f.Lists, func(l fleet.ListStatus) bool { return l.Name == "blocked" && l.Sequence > 0 })
	})
}

// addMembers makes the fleet show other members.
func addMembers(t testing.TB, n *harness.NATS, members ...fleet.Presence) {
	t.Helper()
	nc, err := nats.Connect("nats://" + n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "spamgate-members")
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range members {
		p.Instance, p.Time = fmt.Sprint("i", i), time.Now()
		value, err := json.Marshal(p)
		if err == nil {
			_, err = kv.Put(t.Context(), strings.ReplaceAll(p.Name, ".", "=2E")+"."+p.Instance, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// others are members with whom something is wrong.
func others() []fleet.Presence {
	list := func(sequence uint64, failed string) []fleet.ListStatus {
		return []fleet.ListStatus{{Name: "blocked", Sequence: sequence, SHA256: strings.Repeat("0123456789abcdef", 4), Error: failed}}
	}
	return []fleet.Presence{
		{Name: "mx2", Version: "0.9.0", Lists: list(1, "")},
		{Name: "mx3.a-very-long-name-of-a-host.customers.example.net", Version: "0.9.0-12-g0123456789ab", Lists: list(1, "no space left on device")},
	}
}

// TestHostileMembers shows members whose every text is hostile, but for the name: those with other
// names than gates have are not shown.
func TestHostileMembers(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	s := startSite(t, inFleet(n, harness.Setup{Lists: harness.ManagedLists}))
	s.waitFleet(t)
	texts := corpus(t)
	var members []fleet.Presence
	for i, text := range texts {
		report, err := json.Marshal(admin.FleetReport{Problem: text, Lists: []admin.FleetServes{{List: text, Problem: text}}})
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, fleet.Presence{
			Name: fmt.Sprint("mx", i+2), Version: text, Clash: text, Report: report,
			Lists: []fleet.ListStatus{{Name: "blocked", Sequence: 9, SHA256: text, Error: text, Fetches: true}, {Name: text, Error: text}},
		})
	}
	addMembers(t, n, members...)
	b := s.login(t, startBrowser(t), "admin")
	b.harmless("/fleet")
	harness.WaitFor(t, "the page with all members", func() bool {
		b.harmless("/fleet")
		return eval[int](b, `document.querySelectorAll("tbody tr").length`) > len(texts)
	})
	shown := b.text()
	for _, text := range texts {
		if text = strings.Join(strings.Fields(text), " "); !strings.Contains(shown, text) && !strings.ContainsAny(text, "\u202e\u200b\u200f") {
			t.Errorf("the page does not show %q", text)
		}
	}
	b.harmless("/mail") // which nobody of them answers
	b.harmless("/mail/AAAAAAAAAAAA")
}
