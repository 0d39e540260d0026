package decisions

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/decisions"
	"spamgate/internal/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	spammer = "x@mail.spam.example"
	friend  = "friend@clean.example"
	ann     = "ann@example.net"
)

// start starts a gate that logs lines of a level and above into gate.log.
func start(t testing.TB, level string, s harness.Setup) *harness.Gate {
	t.Helper()
	s.Listen = harness.FreeAddr(t)
	s.Keys = map[string]string{"log": "output = \"file:gate.log\"\nlevel = \"" + level + "\"\n" + s.Keys["log"]}
	return serve(t, s.Dir(t), s.Listen)
}

// serve starts a gate in a directory that has its files.
func serve(t testing.TB, dir, addr string) *harness.Gate {
	t.Helper()
	g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
	g.Addr = addr
	harness.WaitFor(t, "the gate to listen", func() bool { return harness.Greets(addr) })
	return g
}

// refuse has the gate refuse the spammer, and returns the id in its reply.
func refuse(t testing.TB, g *harness.Gate) string {
	t.Helper()
	c := harness.MustDial(t, g.Addr)
	reply, err := c.Verdict(spammer, ann)
	if err != nil {
		t.Fatal(err)
	}
	c.Want(t, "QUIT", "221")
	return harness.WantRefusal(t, reply, spammer, "blocked", "unsolicited mail")
}

// accept has the gate accept a message of a friend.
func accept(t testing.TB, g *harness.Gate) {
	t.Helper()
	harness.MustDial(t, g.Addr).MustSend(t, friend, ann, harness.SmallMessage(friend, "a test"))
}

// find returns what "decisions find --json" finds.
func find(t testing.TB, g *harness.Gate, flags ...string) decisions.Page {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"decisions", "find", "--json"}, flags...)...)
	cmd.Dir = g.Dir
	out, errs, code := harness.Run(t, cmd)
	var page decisions.Page
	if err := json.Unmarshal([]byte(out), &page); err != nil || errs != "" || code != 0 && len(page.Decisions) > 0 {
		t.Fatalf("find %q: exit code %d, %v\n%s%s", flags, code, err, out, errs)
	}
	return page
}

// ids returns the ids of decisions.
func ids(p decisions.Page) (ids []string) {
	for _, d := range p.Decisions {
		ids = append(ids, d.ID)
	}
	return ids
}

// wantIDs wants these decisions to be found.
func wantIDs(t testing.TB, g *harness.Gate, want []string, flags ...string) {
	t.Helper()
	if got := ids(find(t, g, flags...)); !slices.Equal(got, want) {
		t.Errorf("find %q: %q, want %q", flags, got, want)
	}
}

// wantText wants texts in the output of a command, wherever its lines are broken.
func wantText(t testing.TB, out string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
}

// logOf returns the log of a gate.
func logOf(t testing.TB, g *harness.Gate) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.Dir, "gate.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write changes config.toml.
func write(t testing.TB, g *harness.Gate, old, with string) {
	t.Helper()
	path := filepath.Join(g.Dir, "config.toml")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("no %q in config.toml: %v", old, err)
	}
	harness.WriteFile(t, path, strings.Replace(string(text), old, with, 1))
}
