package limits

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// switches returns how often the threads of a process have been woken so far.
func switches(t testing.TB, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads of process %d: %v", pid, err)
	}
	total := 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if text, ok := strings.CutPrefix(lines.Text(), "voluntary_ctxt_switches:"); ok {
				n, err := strconv.Atoi(strings.TrimSpace(text))
				if err != nil {
					t.Fatal(err)
				}
				total += n
			}
		}
		f.Close()
	}
	return total
}

// TestLogsBesideLists has other programs write their logs beside the files that the gate
// watches. That hardly wakes the gate, and it still notices a list that changes.
func TestLogsBesideLists(t *testing.T) {
	const lines, perTick = 10_000, 5 // in 2 s
	for _, place := range []struct{ name, dir string }{
		{"the parent of the lists", "."},
		{"the lists", "lists"},
		{"the certificates", "certs"},
	} {
		t.Run(place.name, func(t *testing.T) {
			cert, key := harness.NewPEM(t, "gate.example", 1)
			g := harness.StartGate(t, harness.Setup{
				Keys:  map[string]string{"listen": "tls = \"starttls\"\ntls_cert = \"certs/gate.pem\"\ntls_key = \"certs/gate.key\""},
				Lists: "[[list]]\nname = \"blocked\"\npath = \"lists/blocked.txt\"\n[watch]\npoll_interval = \"1h\"\n",
				Files: map[string]string{"lists/blocked.txt": "spam.example\n", "certs/gate.pem": cert, "certs/gate.key": key},
			})
			// Two logs, since the kernel merges successive events of one file.
			var logs [2]*os.File
			for i := range logs {
				var err error
				if logs[i], err = os.Create(filepath.Join(g.Dir, place.dir, fmt.Sprintf("%d.log", i))); err != nil {
					t.Fatal(err)
				}
				defer logs[i].Close()
			}
			before, used := switches(t, g.Process.Pid), harness.CPUTime(t, g.Process.Pid)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for i := range lines {
				if i%perTick == 0 {
					<-tick.C // otherwise the gate would read the events in a few batches
				}
				if _, err := fmt.Fprintf(logs[i%2], "line %d\n", i); err != nil {
					t.Fatal(err)
				}
			}
			// Events come in order: when the gate has seen this one, it has seen those before.
			harness.WriteFile(t, filepath.Join(g.Dir, "lists/blocked.txt"), "new.example\n")
			g.WaitRecord("lists live")
			woken := switches(t, g.Process.Pid) - before
			t.Logf("%d lines have woken the gate %d times, %v of CPU", lines, woken, harness.CPUTime(t, g.Process.Pid)-used)
			if woken > lines/4 {
				t.Errorf("%d lines of other programs' logs have woken the gate %d times", lines, woken)
			}
		})
	}
}
