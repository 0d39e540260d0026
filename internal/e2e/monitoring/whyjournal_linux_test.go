package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// TestWhyJournal writes what a gate logged into a real journal, with what journald adds, and has
// the command ask journalctl. Lines of another unit that look like the gate's do not count.
func TestWhyJournal(t *testing.T) {
	t.Parallel()
	harness.Program(t, "journalctl", "systemd")
	remote := "/lib/systemd/systemd-journal-remote"
	if _, err := os.Stat(remote); err != nil {
		remote = harness.Program(t, "systemd-journal-remote", "systemd-journal-remote")
	}
	harness.PrivateMounts(t)
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil || len(machine) < 32 {
		t.Skipf("no machine id, by which journalctl finds the journal: %v", err)
	}

	s := harness.Setup{}
	g := harness.StartGate(t, s)
	reply, err := harness.MustDial(t, g.Addr).Verdict("x@spam.example", "you@example.net")
	if err != nil {
		t.Fatal(err)
	}
	id := harness.WantRefusal(t, reply, "x@spam.example", "blocked", "unsolicited mail")
	line := strings.TrimSpace(g.Log.Wait("refused", func(line string) bool { return strings.Contains(line, id) }))
	forged := strings.ReplaceAll(line, id, "AAAAAAAAAAAA")

	const where = "/var/log/journal"
	if err := os.MkdirAll(where, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", where, "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(where, string(machine[:32]))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var export strings.Builder
	for i, entry := range []struct{ unit, message string }{
		{"spamgate.service", "Started spamgate."},
		{"spamgate.service", line},
		{"other.service", forged},
	} {
		fmt.Fprintf(&export, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%032d\n_SYSTEMD_UNIT=%s\nSYSLOG_IDENTIFIER=spamgate\nMESSAGE=%s\n\n",
			1795390463000000+int64(i), 1000+i, 1, entry.unit, entry.message)
	}
	cmd := exec.Command(remote, "-o", filepath.Join(dir, "system.journal"), "-")
	cmd.Stdin = strings.NewReader(export.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	if a := why(t, g, 0, id); len(a.Messages) != 1 || a.Messages[0].Outcome != "refused" || a.newNow("x@spam.example") != "reject" {
		t.Errorf("the id: %+v", a)
	}
	if a := why(t, g, 0, "you@example.net"); len(a.Messages) != 1 || a.Messages[0].ID != id {
		t.Errorf("the recipient: %+v", a)
	}
	if a := why(t, g, 1, "AAAAAAAAAAAA"); len(a.Messages) != 0 {
		t.Errorf("another unit: %+v", a)
	}
	if a := why(t, g, 0, "AAAAAAAAAAAA", "--unit", "other"); len(a.Messages) != 1 {
		t.Errorf("that unit: %+v", a)
	}
}
