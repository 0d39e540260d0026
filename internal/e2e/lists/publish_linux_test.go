package lists

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// TestPublishHandover has a gate that learns of each change at once while the one that publishes
// hands over again and again.
func TestPublishHandover(t *testing.T) {
	t.Parallel()
	var g *harness.Succession
	p := startPublishing(t, func(s harness.Setup) *harness.Gate {
		g = harness.LaunchSuccession(t, s.Dir(t), nil, nil, harness.Binary(t), "serve")
		g.Addr = g.WaitListening()
		return g.Gate
	})
	r := harness.StartGate(t, p.reader(publishToken))
	for i := range harness.IfFull(3, 20) {
		domain := fmt.Sprintf("new%d.example", i)
		p.Lists(t, 0, "add", domain, "--reason", "test")
		harness.WaitVerdict(t, r.Addr, "x@"+domain, "550")
		g.HandOver()
		p.Lists(t, 0, "remove", domain, "--reason", "test")
		harness.WaitVerdict(t, r.Addr, "x@"+domain, "250")
	}
	g.Stop()
}

// TestPublishReload has a gate that begins to publish at a reload, publishes another list at the
// next, and ends it.
func TestPublishReload(t *testing.T) {
	t.Parallel()
	p := startPublishing(t, func(s harness.Setup) *harness.Gate { return harness.StartGate(t, s) })
	config := filepath.Join(p.Dir, "config.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(old, with string) {
		t.Helper()
		text = []byte(strings.ReplaceAll(string(text), old, with))
		harness.WriteFile(t, config, string(text))
		p.Signal(syscall.SIGHUP)
	}
	reload(`default = true
publish = true
`, `default = true
publish = true
[[list]]
name = "more"
path = "more.txt"
publish = true
`)
	if why := p.WaitRecord("reload failed, nothing has changed").Text("error"); !strings.Contains(why, "more.txt") {
		t.Error(why)
	}
	harness.WriteFile(t, filepath.Join(p.Dir, "more.txt"), "more.example\n")
	p.Signal(syscall.SIGHUP)
	p.WaitRecord("list published", "list", "more")
	more := p.reader(publishToken)
	more.Lists = strings.ReplaceAll(strings.ReplaceAll(more.Lists, "blocked", "more"), "optional = true\n", "")
	r := harness.StartGate(t, more)
	harness.WaitVerdict(t, r.Addr, "x@more.example", "550")
	reload(`path = "more.txt"
publish = true`, `path = "more.txt"`)
	waitFetch(t, r, "404 Not Found")
	reload("[publish]\naddr = \"127.0.0.1:0\"", "[publish]\naddr = \"\"")
	waitFetch(t, r, "connection refused")
	reload("[publish]\naddr = \"\"", "[publish]\naddr = \"127.0.0.1:"+p.port+"\"")
	waitFetch(t, r, "404 Not Found")
	reload(`path = "more.txt"`, `path = "more.txt"
publish = true`)
	waitFetch(t, r, "up to date")
}

// waitFetch waits until fetching the lists of a gate says a text.
func waitFetch(t *testing.T, g *harness.Gate, want string) {
	t.Helper()
	for late := time.Now().Add(harness.WorkTimeout); ; {
		cmd := exec.Command(harness.Binary(t), "lists", "fetch")
		cmd.Dir = g.Dir
		stdout, stderr, _ := harness.Run(t, cmd)
		if strings.Contains(stdout+stderr, want) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("it still says %s%s, want %s", stdout, stderr, want)
		}
	}
}
