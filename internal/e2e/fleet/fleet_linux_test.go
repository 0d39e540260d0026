package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

// member is a gate of a fleet.
type member struct {
	*harness.Gate
	name string
}

// setup returns a gate that shares the managed list "shared".
func setup(n *harness.NATS, name string) harness.Setup {
	return harness.Setup{
		Tables: fmt.Sprintf("[fleet]\nname = %q\nservers = [%q]\n", name, "nats://"+n.Addr),
		Lists:  "[[list]]\nname = \"shared\"\nmanaged = true\nfleet = true\n",
	}
}

// startMembers starts gates of one fleet, and waits until all have the list's first version.
func startMembers(t *testing.T, n *harness.NATS, names ...string) []*member {
	t.Helper()
	var all []*member
	for _, name := range names {
		all = append(all, &member{harness.LaunchGate(t, setup(n, name)), name})
	}
	for _, m := range all {
		m.Addr = m.WaitListening()
	}
	waitEqual(t, all...)
	return all
}

// status returns the fleet as a gate sees it.
func (m *member) status() (f admin.Fleet) {
	m.T.Helper()
	cmd := exec.Command(harness.Binary(m.T), "fleet", "status", "--json")
	cmd.Dir = m.Dir
	stdout, stderr, _ := harness.Run(m.T, cmd) // the exit code says whether all is well
	if err := json.Unmarshal([]byte(stdout), &f); err != nil {
		m.T.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	return f
}

// waitEqual waits until all members have the same version of the list, each as it sees itself.
func waitEqual(t *testing.T, members ...*member) admin.Fleet {
	t.Helper()
	var f admin.Fleet
	harness.WaitFor(t, "all members have the same version", func() bool {
		sum := ""
		for _, m := range members {
			f = m.status()
			f.Lists = slices.DeleteFunc(f.Lists, func(l fleet.ListStatus) bool { return l.Name != "shared" })
			if f.State != admin.FleetConnected || len(f.Lists) != 1 || f.Lists[0].Sequence == 0 || f.Lists[0].Behind || f.Lists[0].Error != "" {
				return false
			}
			if sum == "" {
				sum = f.Lists[0].SHA256
			}
			if f.Lists[0].SHA256 != sum || m.file() != members[0].file() {
				return false
			}
		}
		return true
	})
	return f
}

// file returns the list's file.
func (m *member) file() string {
	m.T.Helper()
	text, err := os.ReadFile(filepath.Join(m.Dir, "state", "managed", "shared.txt"))
	if err != nil {
		m.T.Fatal(err)
	}
	return string(text)
}

// refuses waits until a gate refuses a sender.
func (m *member) refuses(t *testing.T, from string) {
	t.Helper()
	harness.WaitVerdict(t, m.Addr, from, "550 5.7.1")
}

// start starts a gate again that has ended.
func (m *member) start() {
	m.T.Helper()
	server := m.Server
	if server != nil {
		server = harness.LaunchFleetd(m.T, m.Dir)
	}
	m.Gate = harness.Serve(m.T, m.Dir)
	m.Server = server
}

// TestEdits makes edits on each of three gates, which all have.
func TestEdits(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2", "mx3")
	for _, g := range gates {
		g.Lists(t, 0, "add", g.name+".example", "--reason", "of "+g.name)
		for _, other := range gates {
			other.refuses(t, "someone@"+g.name+".example")
		}
	}
	f := waitEqual(t, gates...)
	if f.Lists[0].Sequence < 4 {
		t.Errorf("the sequence is %d", f.Lists[0].Sequence)
	}
	gates[2].Lists(t, 0, "remove", "mx1.example", "--reason", "they have stopped")
	harness.WaitVerdict(t, gates[0].Addr, "someone@mx1.example", "250")
	waitEqual(t, gates...)
	harness.WaitFor(t, "all members are shown", func() bool { return len(gates[0].status().Members) == 3 })
	if text := gates[0].Command(t, 0, "fleet", "diff"); !strings.Contains(text, "all members serve the same") {
		t.Error(text)
	}
	if text := gates[0].Command(t, 2, "fleet", "member", "MX2"); !strings.Contains(text, "mx2 is a member of the fleet that runs now") {
		t.Error(text)
	}
	gates[0].Command(t, 0, "fleet", "member", "mx4")
}

// TestKilled kills a gate, edits the list elsewhere, and starts it again.
func TestKilled(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2", "mx3")
	gates[0].Lists(t, 0, "add", "first.example", "--reason", "all know it")
	for _, g := range gates {
		g.refuses(t, "a@first.example")
	}
	dead := gates[1]
	dead.Kill()
	<-dead.Exited
	dead.Ended = true
	gates[0].Lists(t, 0, "add", "second.example", "--reason", "while one is down")
	gates[2].Lists(t, 0, "remove", "first.example", "--reason", "while one is down")
	dead.start()
	dead.refuses(t, "a@second.example")
	harness.WaitVerdict(t, dead.Addr, "a@first.example", "250")
	waitEqual(t, gates...)
}

// TestServerLost has the fleet's only server killed: edits are refused and change nothing, mail
// goes on, and all is well when it is back.
func TestServerLost(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2")
	gates[0].Lists(t, 0, "add", "first.example", "--reason", "all know it")
	n.Kill()
	text := gates[0].Lists(t, 2, "add", "second.example", "--reason", "without a server")
	if !strings.Contains(text, "the edit is refused: the fleet cannot be reached") {
		t.Error(text)
	}
	if text := gates[0].Lists(t, 2, "pin", "shared"); !strings.Contains(text, "spamgate fleet leave makes this gate decide alone") {
		t.Error(text)
	}
	if got := gates[0].file(); strings.Contains(got, "second.example") {
		t.Errorf("the edit is in the file:\n%s", got)
	}
	gates[1].refuses(t, "a@first.example")
	gates[0].Command(t, 0, "health")
	if h := gates[0].Command(t, 0, "health"); !strings.Contains(h, "fleet  WARNING: not connected") {
		t.Error(h)
	}
	n.Start()
	waitEqual(t, gates...)
	gates[1].Lists(t, 0, "add", "second.example", "--reason", "with the server")
	gates[0].refuses(t, "a@second.example")
}

// TestHandover hands a gate over: its member is one all the time, and edits right after it work.
func TestHandover(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	other := startMembers(t, n, "mx1")[0]
	g := harness.LaunchSuccession(t, setup(n, "mx2").Dir(t), nil, nil, harness.Binary(t), "serve")
	g.Addr = g.WaitListening()
	for i := range 3 {
		g.HandOver()
		g.Lists(t, 0, "add", fmt.Sprintf("handover%d.example", i), "--reason", "just after a handover")
		other.refuses(t, fmt.Sprintf("a@handover%d.example", i))
	}
	waitEqual(t, other, &member{g.Gate, "mx2"})
	harness.WaitFor(t, "two members are shown", func() bool { return len(other.status().Members) == 2 })
	if f := other.status(); len(f.Problems) > 0 {
		t.Errorf("problems: %q", f.Problems)
	}
	for _, msg := range []string{"two gates have one name and one state directory", "panic in the fleet"} {
		if lines := g.Records(msg); len(lines) > 0 {
			t.Error(lines)
		}
	}
	g.Stop()
	g.WantEnded(4)
}

// TestPins pins a list on one gate, which holds for all, and unpins it on another.
func TestPins(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2")
	gates[0].Lists(t, 0, "add", "first.example", "--reason", "before the pin")
	gates[1].refuses(t, "a@first.example")
	gates[0].Lists(t, 0, "pin", "shared", "--reason", "an attack")
	harness.WaitFor(t, "both gates are pinned", func() bool {
		return strings.Contains(gates[1].Lists(t, 0, "status", "shared", "--json"), `"pinned"`)
	})
	gates[0].Lists(t, 0, "add", "second.example", "--reason", "not live")
	waitEqual(t, gates...)
	harness.WaitVerdict(t, gates[1].Addr, "a@second.example", "250")
	gates[1].Lists(t, 0, "unpin", "shared", "--reason", "it is over")
	for _, g := range gates {
		g.refuses(t, "a@second.example")
	}
}

// TestLeave takes a gate out of the fleet, edits the list on both sides, and merges.
func TestLeave(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2")
	gates[0].Command(t, 0, "fleet", "leave")
	gates[0].Lists(t, 0, "add", "alone.example", "--reason", "here alone")
	gates[0].refuses(t, "a@alone.example")
	gates[1].Lists(t, 0, "add", "others.example", "--reason", "on the others")
	harness.WaitVerdict(t, gates[0].Addr, "a@others.example", "250")
	if text := gates[0].Command(t, 0, "health"); !strings.Contains(text, "this gate has left the fleet") {
		t.Error(text)
	}
	text := strings.Join(strings.Fields(gates[0].Command(t, 1, "fleet", "join")), " ")
	for _, want := range []string{"list shared: NOT DONE: the list differs from the fleet's", "--take replaces the list", "mx1 is in the fleet: connected"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	text = gates[0].Command(t, 0, "fleet", "join", "--merge", "--reason", "back again")
	if !strings.Contains(text, "list shared: merged: 1 entry added to the fleet's") {
		t.Error(text)
	}
	for _, g := range gates {
		g.refuses(t, "a@alone.example")
		g.refuses(t, "a@others.example")
	}
	waitEqual(t, gates...)
}

// TestDecisions searches the histories of all gates, also while one of them does not answer.
func TestDecisions(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2")
	gates[0].Lists(t, 0, "add", "spam.example", "--reason", "unsolicited mail")
	for _, g := range gates {
		g.refuses(t, "a@spam.example")
	}
	harness.WaitFor(t, "both members are shown", func() bool { return len(gates[1].status().Members) == 2 })
	find := func(args ...string) string {
		return gates[1].Command(t, 0, append([]string{"decisions", "find", "--sender", "a@spam.example"}, args...)...)
	}
	text := find()
	for _, want := range []string{"  gate  mx1\n", "  gate  mx2\n", "Asked the fleet: mx1, mx2 answered."} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if text := find("--here"); strings.Contains(text, "  gate  ") {
		t.Error(text)
	}
	gates[0].Kill()
	<-gates[0].Exited
	gates[0].Ended = true
	if text := find(); !strings.Contains(text, "Asked the fleet: mx2 answered; NO ANSWER from mx1.") {
		t.Error(text)
	}
}

// TestFetched has a list from a URL, which one gate at a time fetches.
func TestFetched(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fetched.example") }))
	defer server.Close()
	var gates []*member
	for _, name := range []string{"mx1", "mx2"} {
		s := setup(n, name)
		s.Lists += fmt.Sprintf("[[list]]\nname = \"fetched\"\nurl = \"%s/list\"\nallow_http = true\nfleet = true\n", server.URL)
		gates = append(gates, &member{harness.StartGate(t, s), name})
	}
	fetcher := func(gates ...*member) (names []string) {
		for _, g := range gates {
			if strings.Contains(g.Lists(t, 0, "status", "fetched", "--json"), `"next_try"`) {
				names = append(names, g.name)
			}
		}
		return names
	}
	harness.WaitFor(t, "one gate fetches", func() bool { return len(fetcher(gates...)) == 1 })
	first, second := gates[0], gates[1]
	if fetcher(second) != nil {
		first, second = second, first
	}
	second.refuses(t, "a@fetched.example")
	first.Stop()
	harness.WaitFor(t, "the other gate takes over", func() bool { return len(fetcher(second)) == 1 })
	second.Command(t, 0, "health")
}
