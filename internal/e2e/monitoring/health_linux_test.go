package monitoring

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
)

// get returns the status and the body of a page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// health runs the command and returns what it says.
func health(t *testing.T, g *harness.Gate, code int, args ...string) (h admin.Health) {
	t.Helper()
	out := g.Command(t, code, append([]string{"health", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if h.Healthy != (code == 0) && len(args) == 0 {
		t.Errorf("exit code %d: %+v", code, h)
	}
	return h
}

// TestHealth takes a gate's next hop away and gives it back, holds a list, stops the process
// and ends it.
func TestHealth(t *testing.T) {
	t.Parallel()
	hop := harness.Setup{Listen: harness.FreeAddr(t), Hostname: "hop.example"}
	hopDir := hop.Dir(t)
	g := harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + hop.Listen, Tables: "[admin]\nmetrics_addr = \"127.0.0.1:0\"\n",
		Files: map[string]string{"blocked.txt": harness.NumberedList(1500)},
	})
	probes := "http://" + g.WaitRecord("metrics").Text("addr")

	h := health(t, g, 1)
	if h.Mail.OK || len(h.Mail.Listeners) != 1 || !strings.Contains(h.Mail.Problems[0], "connection refused") || !h.Lists.OK || !h.State.OK {
		t.Errorf("without a next hop: %+v", h.Mail)
	}
	if out := g.Command(t, 1, "health"); !strings.Contains(out, "mail   PROBLEM: next hop smtp://"+hop.Listen) {
		t.Errorf("it says\n%s", out)
	}
	if code, body := get(t, probes+"/readyz"); code != 503 || body != "not ready: next hop smtp://"+hop.Listen+" is down\n" {
		t.Errorf("readyz: %d, %q", code, body)
	}
	if code, body := get(t, probes+"/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("healthz: %d, %q", code, body)
	}

	next := harness.Serve(t, hopDir)
	h = health(t, g, 0)
	if h.PID != g.Process.Pid || h.Mail.NextHops[0].Passed == nil || h.Lists.Lists[0].Entries != 1500 || h.Lists.Lists[0].Age == nil || h.State.Free == nil {
		t.Errorf("with a next hop: %+v, %+v, %+v, %+v", h, h.Mail, h.Lists, h.State)
	}
	if code, body := get(t, probes+"/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("readyz: %d, %q", code, body)
	}

	harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), "")
	g.WaitRecord("list held, its last good version serves")
	if h = health(t, g, 1); !h.Mail.OK || h.Lists.OK || !h.Lists.Lists[0].Held || h.Lists.Lists[0].OK {
		t.Errorf("with a held list: %+v", h.Lists)
	}
	health(t, g, 0, "--mail")
	g.Lists(t, 0, "pin", "blocked", "--reason", "until it is whole")
	if h = health(t, g, 0); !h.Lists.Lists[0].Pinned {
		t.Errorf("with a pinned list: %+v", h.Lists)
	}

	next.Stop()
	g.Signal(syscall.SIGSTOP)
	if h = health(t, g, 1, "--timeout", "100ms"); h.Running || !strings.Contains(h.Error, "did not answer within 100ms") {
		t.Errorf("of a process that stands still: %+v", h)
	}
	g.Signal(syscall.SIGCONT)
	g.Stop()
	if h = health(t, g, 1); h.Running || !strings.Contains(h.Error, "no gate is running") {
		t.Errorf("after the end: %+v", h)
	}
}

// TestHealthNotAsked has a socket that this user may not ask.
func TestHealthNotAsked(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{})
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), harness.Setup{Tables: "[admin]\nsocket = \"\"\n"}.Config())
	if out := g.Command(t, 2, "health"); !strings.Contains(out, `[admin] socket is ""`) {
		t.Errorf("it says %s", out)
	}
	file := filepath.Join(g.Dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), harness.Setup{Tables: "[admin]\nsocket = \"file\"\n"}.Config())
	if out := g.Command(t, 2, "health"); !strings.Contains(out, "cannot query a gate at "+file) {
		t.Errorf("it says %s", out)
	}
}

// TestHealthListsNobody has lists with lines of which none lists anybody, and lists that are empty
// on purpose.
func TestHealthListsNobody(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{
		Tables: `[[list]]
name = "regexps"
path = "regexps.txt"
format = "postfix"
[[list]]
name = "servers"
path = "servers.txt"
format = "dnsmasq"
[[list]]
name = "comments"
path = "comments.txt"
[[list]]
name = "new"
managed = true
`,
		Files: map[string]string{
			"blocked.txt":  "listed.example\n",
			"regexps.txt":  "/bad/ REJECT\nworse.example DISCARD\n",
			"servers.txt":  "server=/bad.example/127.0.0.1\nserver=/worse.example/192.0.2.1\n",
			"comments.txt": "# nothing yet\n",
		},
	})
	h := health(t, g, 1)
	want := []string{
		"list regexps: it lists nobody (lines left out: 2); check whether its format is right",
		"list servers: it lists nobody (lines left out: 2, exceptions: 1); check whether its format is right",
	}
	if !slices.Equal(h.Lists.Problems, want) || !h.Mail.OK || !h.State.OK {
		t.Errorf("%q, want %q", h.Lists.Problems, want)
	}
	harness.WriteFile(t, filepath.Join(g.Dir, "regexps.txt"), "/bad/ REJECT\nworse.example REJECT\n")
	harness.WriteFile(t, filepath.Join(g.Dir, "servers.txt"), "address=/bad.example/\nserver=/sub.bad.example/192.0.2.1\n")
	for list, want := range map[string]int{"regexps": 1, "servers": 2} { // and an exception before
		harness.WaitFor(t, "list "+list, func() bool { return g.Status(t, list).Lists[0].Entries == want })
	}
	health(t, g, 0)
}
