package limits

import (
	"bufio"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// TestSystemCalls has strace count the gate's system calls for messages of 4 KiB, each
// on its own connection. A message may take a write for each reply and each flight to
// the next hop, a read for each command and reply, one more read when there is nothing
// to read yet, the calls of its connection, and a line of the log. The gate opens no
// file and looks at nothing twice.
func TestSystemCalls(t *testing.T) {
	strace := harness.Program(t, "strace", "strace")
	const messages = 200
	const client, flights = 7, 3 // replies to a client, with the greeting; flights to the next hop
	limits := map[string]float64{
		"write":       client + flights + 1 + 1, // the last one is the runtime's, which wakes a thread
		"read":        2 * (client - 1 + flights),
		"recvfrom":    3, // whether the client sends early, and the next hop before MAIL and before the end of the message
		"setsockopt":  1, // TCP_NODELAY, by Go
		"accept4":     2,
		"epoll_ctl":   2,
		"getsockname": 1,
		"close":       1,
	}
	// Calls of the runtime, which depend on what else the machine does.
	own := []string{"futex", "nanosleep", "epoll_pwait", "sched_yield", "tgkill", "getpid", "rt_sigreturn", "restart_syscall", "madvise", "mmap", "sigaltstack", "rt_sigprocmask", "clone", "clone3", "sched_getaffinity", "set_robust_list", "rseq", "gettid", "munmap"}

	sink := smtptest.NewSink(t, smtptest.Config{DropBodies: true})
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + sink.Addr()})
	send := func() {
		c := harness.MustDial(t, g.Addr)
		c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "counted")+strings.Repeat("A line.\r\n", 400))
		c.Want(t, "QUIT", "221")
		c.Close()
	}
	for range 3 { // then the gate knows the next hop and has a connection to it
		send()
	}
	calls := countCalls(t, strace, g.Process.Pid, func() {
		for range messages {
			send()
		}
	})
	g.Stop()
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		each := float64(calls[name]) / messages
		t.Logf("%6.2f %s", each, name)
		const noise = 0.5 // for what happens now and then: a probe, a look at the lists
		if each > limits[name]+noise && !slices.Contains(own, name) {
			t.Errorf("%.2f %s a message, want at most %.0f", each, name, limits[name])
		}
	}
	if calls["write"] < messages {
		t.Error("strace has not counted")
	}
}

// countCalls returns how often a process makes each system call while do runs.
func countCalls(t *testing.T, strace string, pid int, do func()) map[string]int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	cmd := exec.Command(strace, "-f", "-c", "-U", "calls,name", "-o", file, "-p", strconv.Itoa(pid))
	readCloser, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	attached := bufio.NewScanner(readCloser)
	if !attached.Scan() || !strings.Contains(attached.Text(), "attached") {
		cmd.Wait()
		harness.SkipMissing(t, "strace cannot be used here: %s", attached.Text())
	}
	go func() { // it reports each thread
		for attached.Scan() {
		}
	}()
	do()
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait() // its exit code is that of the signal
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var n int
		var name string
		if f := strings.Fields(line); len(f) == 2 {
			n, _ = strconv.Atoi(f[0])
			name = f[1]
		}
		if n > 0 && name != "total" {
			calls[name] = n
		}
	}
	return calls
}
