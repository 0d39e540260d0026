package state

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

func wantAll(t *testing.T, where, text string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%s lacks %q:\n%s", where, want, text)
		}
	}
}

// TestPin pins a list in a running gate: its changes wait through edits, a reload, a kill and a
// start, until it is unpinned.
func TestPin(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{})
	blocked := filepath.Join(g.Dir, "blocked.txt")
	wantAll(t, "a dry run", g.Lists(t, 0, "pin", "blocked", "--dry-run"), "list blocked: would be pinned at a version with 1 entry", "nothing has changed")
	g.Lists(t, 2, "unpin", "blocked")
	wantAll(t, "pin", g.Lists(t, 0, "pin", "blocked", "--reason", "outbreak"), "list blocked: pinned at a version with 1 entry", "live in the running gate")
	g.WaitRecord("list pinned, changes of it are held", "list", "blocked", "why", "outbreak")

	const waits = "written, but not live: pinned since"
	wantAll(t, "add", g.Lists(t, 0, "add", "new.example", "--reason", "test"), waits, "and the files have another version (entries: 2); spamgate lists unpin blocked takes what the files have")
	harness.WaitVerdict(t, g.Addr, "x@spam.example", "550")
	wait := func(from, prefix string) {
		t.Helper()
		harness.WaitVerdict(t, g.Addr, from, prefix)
	}
	wait("x@new.example", "250")
	wantAll(t, "status", g.Lists(t, 0, "status"), "PINNED since", "1 entry, by", ": outbreak", "HELD since", "spamgate lists unpin blocked")
	wantAll(t, "status in JSON", g.Lists(t, 0, "status", "blocked", "--json"), `"pinned": {`, `"why": "outbreak"`, `"held": true`)
	wantAll(t, "accept", g.Lists(t, 2, "accept", "blocked"), "cannot be accepted as it is: pinned", "unpin blocked")
	wantAll(t, "the audit log", string(readFile(t, filepath.Join(g.Dir, "state", "audit.log"))), `"command":"pin"`, `"why":"outbreak"`, "1 entries")

	g.Signal(syscall.SIGHUP)
	g.WaitRecord("reloaded")
	wait("x@new.example", "250")
	g.Kill()
	g.Wait()
	g = harness.Serve(t, g.Dir)
	wait("x@new.example", "250")
	wait("x@spam.example", "550")
	g.Stop()

	// Without a gate.
	wantAll(t, "remove", g.Lists(t, 0, "remove", "spam.example"), "written, but not live: list blocked is pinned since")
	wantAll(t, "status", g.Lists(t, 0, "status"), "PINNED since", "HELD since")
	g = harness.Serve(t, g.Dir)
	wait("x@spam.example", "550")
	harness.WriteFile(t, blocked, "edited.example\n")
	wantAll(t, "a dry run", g.Lists(t, 0, "unpin", "blocked", "--dry-run"), "would be unpinned", "spamgate lists diff blocked")
	wantAll(t, "diff", g.Lists(t, 1, "diff", "blocked"), "edited.example", "spam.example")
	wantAll(t, "unpin", g.Lists(t, 0, "unpin", "blocked", "--reason", "over"), "list blocked: unpinned", "live in the running gate", "1 entry; 1 before")
	wait("x@edited.example", "550")
	wait("x@spam.example", "250")
	if text := g.Lists(t, 0, "status"); strings.Contains(text, "PINNED") || strings.Contains(text, "HELD") {
		t.Errorf("after unpin the status is\n%s", text)
	}
}

// TestPinOutlivesItsIndex pins without a gate, changes the list, and loses the index.
func TestPinOutlivesItsIndex(t *testing.T) {
	t.Parallel()
	g := harness.StartGate(t, harness.Setup{Tables: "[state]\nhistory = 0\n"})
	g.Stop()
	wantAll(t, "pin", g.Lists(t, 0, "pin", "blocked"), "pinned at a version with 1 entry", "no gate is running: this holds from the next start on")
	harness.WriteFile(t, filepath.Join(g.Dir, "blocked.txt"), "other.example\n")
	if err := os.Remove(filepath.Join(g.Dir, "state", "lists.key")); err != nil {
		t.Fatal(err)
	}
	g = harness.Serve(t, g.Dir)
	g.WaitRecord("pinned version restored from history", "list", "blocked")
	harness.WaitVerdict(t, g.Addr, "x@spam.example", "550")
	harness.WaitVerdict(t, g.Addr, "x@other.example", "250")
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
