package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// switches returns how often the threads of a process have gone to sleep and been
// woken again so far.
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

// TestLogsBesideLists has other programs write their logs beside the files that the
// gate watches: that hardly wakes it, and it still notices a list that changes.
func TestLogsBesideLists(t *testing.T) {
	const lines, perTick = 10_000, 5 // in 2 s
	for _, place := range []struct{ name, dir string }{
		{"the parent of the lists", "."},
		{"the lists", "lists"},
		{"the certificates", "certs"},
	} {
		t.Run(place.name, func(t *testing.T) {
			cert, key := soakCertificate(t)
			g := startGate(t, setup{
				keys:  map[string]string{"listen": "tls = \"starttls\"\ntls_cert = \"certs/gate.pem\"\ntls_key = \"certs/gate.key\""},
				lists: "[[list]]\nname = \"blocked\"\npath = \"lists/blocked.txt\"\n[watch]\npoll_interval = \"1h\"\n",
				files: map[string]string{"lists/blocked.txt": "spam.example\n", "certs/gate.pem": cert, "certs/gate.key": key},
			})
			// Two, since the kernel merges events in a row that are of one file.
			var logs [2]*os.File
			for i := range logs {
				var err error
				if logs[i], err = os.Create(filepath.Join(g.dir, place.dir, fmt.Sprintf("%d.log", i))); err != nil {
					t.Fatal(err)
				}
				defer logs[i].Close()
			}
			before, used := switches(t, g.process.Pid), processorTime(t, g.process.Pid)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for i := range lines {
				if i%perTick == 0 {
					<-tick.C // or the events would be taken in a few batches
				}
				if _, err := fmt.Fprintf(logs[i%2], "line %d\n", i); err != nil {
					t.Fatal(err)
				}
			}
			// Events come in order: when the gate has seen this, it has seen those.
			writeFile(t, filepath.Join(g.dir, "lists/blocked.txt"), "new.example\n")
			g.waitRecord("lists live")
			woken := switches(t, g.process.Pid) - before
			t.Logf("%d lines have woken the gate %d times, %v of CPU", lines, woken, processorTime(t, g.process.Pid)-used)
			if woken > lines/4 {
				t.Errorf("%d lines of other programs' logs have woken the gate %d times", lines, woken)
			}
		})
	}
}
