package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
	"spamgate/internal/smtptest"
)

// TestUpgrade has three gates with servers beside them, which are upgraded and then downgraded by a
// version one after the other, as the package does it: the gate hands over, and the server restarts.
// Meanwhile mail runs through all gates, and edits are made on all.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	rounds := []string{harness.BinaryOf(t, "99.0.0"), harness.Binary(t)}
	var gates []*member
	var successions []*harness.Succession
	var sinks []*smtptest.Sink
	var programs []string
	for i, s := range initFleet(t, "mx1", "mx2", "mx3") {
		sink, program := smtptest.NewSink(t), filepath.Join(t.TempDir(), "spamgate")
		s.NextHop = "smtp://" + sink.Addr()
		install(t, harness.Binary(t), program)
		m, g := succession(t, s, fmt.Sprint("mx", i+1), program)
		gates, successions, sinks, programs = append(gates, m), append(successions, g), append(sinks, sink), append(programs, program)
	}
	var loads []*harness.Load
	for _, g := range gates {
		g.Addr = g.WaitListening()
		loads = append(loads, harness.StartLoad(t, g.Addr, false))
	}
	waitEqual(t, gates...)
	e := startEdits(gates...)
	for round, program := range rounds {
		for i, g := range successions {
			mailDuring(loads, 30, func() {
				install(t, program, programs[i])
				g.HandOver()
				g.Server.Stop()
				g.Server = harness.LaunchFleetd(t, g.Dir)
				g.Server.WaitRecord("server of the fleet runs")
			})
			for _, other := range gates {
				waitWell(t, other, len(gates)) // as docs/fleet.md says, before the next one
			}
		}
		wantVersions(t, gates[round], map[bool]string{true: "99.0.0", false: gates[0].version()}[round == 0])
	}
	var sent []map[string]bool
	for _, l := range loads {
		sent = append(sent, l.Stop())
	}
	e.stop(t, gates...)
	for i, g := range successions {
		g.Stop()
		g.WantEnded(len(rounds) + 1)
		harness.WantOnce(t, sinks[i], sent[i])
		t.Logf("mx%d: %d messages", i+1, len(sent[i]))
	}
}

// mailDuring has n messages begin through each gate while do runs.
func mailDuring(loads []*harness.Load, n int, do func()) {
	if len(loads) == 0 {
		do()
		return
	}
	loads[0].During(n, func() { mailDuring(loads[1:], n, do) })
}

// install puts a program in the place of another one that may run. Another process writes the
// copy: a program that is open for writing cannot be run.
func install(t *testing.T, from, to string) {
	t.Helper()
	if _, text, code := harness.Run(t, exec.Command(harness.Program(t, "cp", "coreutils"), from, to+".new")); code != 0 {
		t.Fatal(text)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

// version returns the version of the program of the tests.
func (m *member) version() string {
	m.T.Helper()
	var v struct{ Version string }
	if err := json.Unmarshal([]byte(m.Command(m.T, 0, "version", "--json")), &v); err != nil {
		m.T.Fatal(err)
	}
	return v.Version
}

// wantVersions waits until all members show that version.
func wantVersions(t *testing.T, m *member, want string) {
	t.Helper()
	harness.WaitFor(t, "all members are "+want, func() bool {
		members := m.status().Members
		for _, p := range members {
			if p.Version != want {
				return false
			}
		}
		return len(members) == 3
	})
}

// TestNewerFormat has a later version write values: those that this version understands are
// used, and the others are refused with words, and change nothing.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	gates := startMembers(t, n, "mx1", "mx2")
	gates[0].Lists(t, 0, "add", "first.example", "--reason", "all know it")
	gates[1].refuses(t, "a@first.example")
	waitEqual(t, gates...)
	nc, err := nats.Connect("nats://" + n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	lists, state := openKV(t, nc, "spamgate-lists"), openKV(t, nc, "spamgate-state")
	const key = "list.shared"
	value := getKey(t, lists, key)

	// A field that this version does not know.
	value["sequence"], value["future"] = value["sequence"].(float64)+1, map[string]any{"a": []int{1}}
	putKey(t, lists, key, value)
	want := uint64(value["sequence"].(float64))
	for _, g := range gates {
		harness.WaitFor(t, "the version is noted", func() bool { return g.status().Lists[0].Sequence == want })
	}
	gates[1].Lists(t, 0, "add", "second.example", "--reason", "after that")
	gates[0].refuses(t, "a@second.example")

	// A format that it does not know.
	value = getKey(t, lists, key)
	before := gates[0].file()
	later := map[string]any{"format": 2, "sequence": value["sequence"].(float64) + 1, "content": []string{"third.example"}}
	putKey(t, lists, key, later)
	pin := map[string]any{"format": 2, "sequence": 1, "value": "of a later version"}
	putKey(t, state, fleet.StateKey("pin", "shared"), pin)
	const words = "a newer version of spamgate has written it, which this one does not understand: upgrade this gate"
	for _, g := range gates {
		harness.WaitFor(t, "the status says it", func() bool { return strings.Contains(fmt.Sprint(g.status().Problems), words) })
	}
	if text := gates[0].Lists(t, 2, "add", "third.example", "--reason", "into the unknown"); !strings.Contains(text, words) {
		t.Error(text)
	}
	gates[1].Stop()
	gates[1].start()
	harness.WaitFor(t, "the status says it after a restart", func() bool { return strings.Contains(fmt.Sprint(gates[1].status().Problems), words) })
	for _, g := range gates {
		g.refuses(t, "a@second.example")
		if got := g.file(); got != before {
			t.Errorf("%s has changed its list to\n%s", g.name, got)
		}
		if text := g.Lists(t, 0, "status", "shared", "--json"); strings.Contains(text, `"pinned"`) {
			t.Error(text)
		}
	}
	if got := getKey(t, lists, key); got["format"] != 2.0 {
		t.Errorf("the newer version is replaced by %v", got)
	}
	if got := getKey(t, state, fleet.StateKey("pin", "shared")); got["format"] != 2.0 {
		t.Errorf("the newer pin is replaced by %v", got)
	}

	// The fleet is downgraded: somebody puts back what the older version has written.
	putKey(t, lists, key, value)
	waitEqual(t, gates...)
	gates[0].Lists(t, 0, "add", "third.example", "--reason", "as before")
	gates[1].refuses(t, "a@third.example")
}

func openKV(t *testing.T, nc *nats.Conn, name string) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(brief(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

func getKey(t *testing.T, kv jetstream.KeyValue, key string) (value map[string]any) {
	t.Helper()
	e, err := kv.Get(brief(t), key)
	if err == nil {
		err = json.Unmarshal(e.Value(), &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func putKey(t *testing.T, kv jetstream.KeyValue, key string, value map[string]any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		_, err = kv.Put(brief(t), key, text)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
