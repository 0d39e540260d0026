package exports

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// costsEnv is the environment variable with the number of entries for TestCompareCosts.
const costsEnv = "SPAMGATE_COMPARE"

// A cost is what a program needs for a list of domains.
type cost struct {
	ready  time.Duration // from the text to the first answer
	memory int64         // RssAnon, in bytes
	change time.Duration // from one line more to the answer by it
}

// TestCompareCosts measures what docs/compare.md says of time and memory. It runs alone,
// and only if it is told how many entries.
func TestCompareCosts(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(costsEnv))
	if err != nil {
		t.Skip("takes minutes; SPAMGATE_COMPARE=1000000 runs it with a million entries")
	}
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "name%d.example\n", i)
	}
	list, last := text.String(), fmt.Sprintf("x@name%d.example", n-1)
	for _, p := range []struct {
		name string
		cost func(t *testing.T, list, last string) cost
	}{{"spamgate", costOfSpamgate}, {"Postfix", costOfPostfix}, {"rbldnsd", costOfRBLDNSD}, {"rspamd", costOfRspamd}} {
		t.Run(p.name, func(t *testing.T) {
			c := p.cost(t, list, last)
			t.Logf("%-9s %d entries: ready after %.2f s, %d MiB, one line more after %.2f s", p.name, n, c.ready.Seconds(), c.memory>>20, c.change.Seconds())
		})
	}
}

// waitRefused waits until a sender is refused: for long, since some programs look at their
// files every few minutes only.
func waitRefused(t *testing.T, refuses func(sender string) (refused, asked bool), sender string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(15 * time.Minute); ; <-tick.C {
		if refused, _ := refuses(sender); refused {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("%s is not refused", sender)
		}
	}
}

const added = "added.example"

// change adds a line to a file and waits until it counts.
func change(t *testing.T, file string, refuses func(sender string) (refused, asked bool)) time.Duration {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(added + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	waitRefused(t, refuses, "x@"+added)
	return time.Since(start)
}

func costOfSpamgate(t *testing.T, list, last string) (c cost) {
	s := harness.Setup{Files: map[string]string{"blocked.txt": list}}
	start := time.Now()
	g := harness.StartGate(t, s)
	asker := &harness.Asker{Addr: g.Addr}
	defer asker.Close()
	refuses := func(sender string) (refused, asked bool) {
		reply, err := asker.Verdict(sender, "you@example.org")
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(reply, "5"), true
	}
	waitRefused(t, refuses, last)
	c.ready = time.Since(start)
	c.memory = harness.ResidentBytes(t, g.Process.Pid)
	c.change = change(t, filepath.Join(g.Dir, "blocked.txt"), refuses)
	return c
}

// costOfPostfix measures postmap, whose table takes no memory of a process.
func costOfPostfix(t *testing.T, list, last string) (c cost) {
	dir := newList(t, "subtree", nil).dir
	source := filepath.Join(dir, "access")
	index := func(text string) time.Duration {
		harness.WriteFile(t, source, text)
		harness.WriteFile(t, filepath.Join(dir, "postmap/main.cf"), "compatibility_level = 3.6\n")
		start := time.Now()
		cmd := exec.Command(harness.Program(t, "postmap", "postfix"), "-c", filepath.Join(dir, "postmap"), "hash:"+source)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("postmap: %v: %s", err, out)
		}
		return time.Since(start)
	}
	list = strings.ReplaceAll(list, "\n", " REJECT\n")
	c.ready = index(list)
	p := servePostfix(t, source, "smtpd_access_maps")
	if refused, _ := p.refuses(last); !refused {
		t.Fatalf("%s is not refused", last)
	}
	c.change = index(list + added + " REJECT\n")
	return c
}

func costOfRBLDNSD(t *testing.T, list, last string) (c cost) {
	dir := newList(t, "subtree", nil).dir
	file := filepath.Join(dir, "zone")
	harness.WriteFile(t, file, "."+strings.ReplaceAll(strings.TrimSuffix(list, "\n"), "\n", "\n.")+"\n")
	start := time.Now()
	r := startRBLDNSD(t, file)
	waitRefused(t, r.refuses, last)
	c.ready = time.Since(start)
	c.memory = harness.ResidentBytes(t, r.pid)
	c.change = change(t, file, r.refuses)
	return c
}

func costOfRspamd(t *testing.T, list, last string) (c cost) {
	dir := newList(t, "subtree", nil).dir
	file := filepath.Join(dir, "map")
	harness.WriteFile(t, file, list)
	start := time.Now()
	r := startRspamd(t, dir, file, `filter = "email:domain";`)
	waitRefused(t, r.refuses, last)
	c.ready = time.Since(start)
	c.memory = harness.ResidentBytes(t, r.pid)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", r.pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		c.memory += harness.ResidentBytes(t, pid)
	}
	c.change = change(t, file, r.refuses)
	return c
}
