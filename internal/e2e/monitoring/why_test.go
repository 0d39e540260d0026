package monitoring

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// whyAnswer is what "why --json" prints.
type whyAnswer struct {
	Messages []struct {
		ID, Outcome string
		Certain     bool
		Events      []struct {
			Event, Text string
			Attributes  map[string]string
		}
	}
	Now []struct {
		Result struct{ Address, Action string }
		Error  string
	}
	NotNow   string `json:"now_unknown"`
	Searched struct{ Logs []string }
}

// why runs the command and returns what it says.
func why(t *testing.T, g *harness.Gate, code int, args ...string) (a whyAnswer) {
	t.Helper()
	out := g.Command(t, code, append([]string{"why", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return a
}

// outcomes returns the outcomes of the messages in order.
func (a whyAnswer) outcomes() (all []string) {
	for _, m := range a.Messages {
		all = append(all, m.Outcome)
	}
	return all
}

// newNow returns what would happen now to an address.
func (a whyAnswer) newNow(address string) string {
	for _, n := range a.Now {
		if n.Result.Address == address {
			return n.Result.Action
		}
	}
	return ""
}

// pack packs a file with gzip and removes it.
func pack(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestWhy has gates write each format of log with each way to show addresses, rotates the log,
// and asks for a refused and an accepted message by id, sender and recipient.
func TestWhy(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		for _, addresses := range []string{"full", "hash", "domain"} {
			t.Run(format+" "+addresses, func(t *testing.T) {
				t.Parallel()
				s := harness.Setup{Listen: harness.FreeAddr(t), Keys: map[string]string{"log": "output = \"file:gate.log\"\naddresses = \"" + addresses + "\""}}
				dir := s.Dir(t)
				if format == "text" {
					harness.WriteFile(t, filepath.Join(dir, "config.toml"), strings.Replace(s.Config(), `format = "json"`, `format = "text"`, 1))
				}
				g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
				g.Addr = s.Listen
				harness.WaitFor(t, "the gate to listen", func() bool { return harness.Greets(g.Addr) })
				testWhy(t, g, addresses)
			})
		}
	}
}

func testWhy(t *testing.T, g *harness.Gate, addresses string) {
	log := filepath.Join(g.Dir, "gate.log")
	refusal, err := harness.Dial(g.Addr, "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	reply, err := refusal.Verdict("Bad+1@mail.spam.example", "you@example.net")
	if err != nil {
		t.Fatal(err)
	}
	id := harness.WantRefusal(t, reply, "Bad+1@mail.spam.example", "blocked", "unsolicited mail")
	// The first file is rotated, the second is not.
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	g.Signal(syscall.SIGHUP)
	harness.WaitFor(t, "a new log", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), "reloaded")
	})
	pack(t, log+".1")
	harness.MustDial(t, g.Addr).MustSend(t, "good@example.org", "you@example.net", "From: <good@example.org>\r\n\r\nhello\r\n")

	a := why(t, g, 0, strings.ToLower(id))
	if len(a.Messages) != 1 || a.Messages[0].ID != id || a.Messages[0].Outcome != "refused" {
		t.Fatalf("the id: %+v", a)
	}
	event := a.Messages[0].Events[0]
	for _, want := range []string{"The gate refused the sender", "list blocked has spam.example (unsolicited mail) at " + filepath.Join(g.Dir, "blocked.txt") + ":1"} {
		if !strings.Contains(event.Text, want) {
			t.Errorf("it says %q, without %q", event.Text, want)
		}
	}
	if now := a.newNow("Bad+1@mail.spam.example"); addresses == "full" && now != "reject" && a.newNow("bad+1@mail.spam.example") != "reject" {
		t.Errorf("now: %+v", a.Now)
	}
	if (addresses == "full") != (a.NotNow == "") {
		t.Errorf("now: %q, %+v", a.NotNow, a.Now)
	}
	if whole := why(t, g, 0, reply); len(whole.Messages) != 1 || whole.Messages[0].ID != id {
		t.Errorf("the whole refusal: %+v", whole)
	}

	for address, want := range map[string][]string{
		"bad+1@mail.SPAM.example": {"refused"},
		"good@example.org":        {"accepted"},
		"you@example.net":         {"refused", "accepted"},
	} {
		a := why(t, g, 0, address)
		if !slices.Equal(a.outcomes(), want) || a.Messages[0].Certain == (addresses == "domain") {
			t.Errorf("%s: %+v", address, a)
		}
	}
	if a := why(t, g, 1, "nobody@example.com"); len(a.Messages) != 0 || len(a.Searched.Logs) != 2 {
		t.Errorf("nobody: %+v", a)
	}

	// The sender that was accepted is listed since.
	if addresses != "domain" {
		g.Lists(t, 0, "add", "good@example.org", "--list", "blocked", "--reason", "since then")
		if a := why(t, g, 0, "good@example.org"); a.newNow("good@example.org") != "reject" {
			t.Errorf("now: %+v", a)
		}
	}
}
