package monitoring

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// longest is a local part of the greatest length, 64 characters.
var longest = strings.Repeat("x", 64)

// flood has the gate log n refusals, of recipients numbered from first on.
func flood(t *testing.T, c *harness.Client, first, n int) {
	t.Helper()
	c.Want(t, "MAIL FROM:<"+longest+"@spam.example>", "250")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "RCPT TO:<n%06d.%s@example.net>\r\n", first+i, longest[:50])
	}
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, b.String())
		sent <- err
	}()
	for range n {
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "550 5.7.1 ") {
			t.Fatalf("a refused recipient heard %q, %v", reply, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	c.Want(t, "RSET", "250")
}

// droppedLines returns the metric of dropped log lines.
func droppedLines(t *testing.T, client *http.Client) int {
	t.Helper()
	family := harness.ReadMetrics(t, client, "http://gate/metrics")["spamgate_log_lines_dropped_total"]
	if family == nil {
		t.Fatal("no metric of dropped lines")
	}
	return int(family.Metric[0].GetCounter().GetValue())
}

// TestLogNotRead has logs that nobody reads. Clients get their replies until lines are
// dropped and after that, and SIGHUP reloads. Once somebody reads, the lines come in
// order; the dropped ones are missing, and the log counts them.
func TestLogNotRead(t *testing.T) {
	t.Parallel()
	eachUnreadLog(t, func(t *testing.T, l *unreadLog) {
		s := unreadSetup(t, l)
		g := startUnread(t, l, s)
		c := harness.MustDial(t, g.Addr)
		c.Want(t, "EHLO "+strings.Repeat(longest[:60]+".", 4)+"example", "250")
		asked := g.SocketClient()
		const block = 500
		total := 0
		for ; droppedLines(t, asked) == 0; total += block {
			if total > 200*block {
				t.Fatalf("%d lines, and none was dropped", total)
			}
			flood(t, c, total, block)
		}
		reply := c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "deaf"))
		if !strings.HasPrefix(reply, "250 ") {
			t.Errorf("a message was answered with %q", reply)
		}
		s.Tables = "[policy]\ncontact = \"reloaded\"\n"
		harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
		g.Signal(syscall.SIGHUP)
		harness.WaitFor(t, "the reload", func() bool {
			reply, err := c.Verdict("a@spam.example", "b@example.net")
			if err != nil || !strings.HasPrefix(reply, "550") {
				t.Fatalf("while reloading: %q, %v", reply, err)
			}
			return strings.HasSuffix(reply, "reloaded")
		})

		lines := l.read()
		var numbers []int
		told := 0
		for told == 0 {
			numbers, told = nextLine(t, lines, numbers, told)
		}
		// All later lines come after the notice.
		flood(t, c, total, block)
		total += block
		for len(numbers) == 0 || numbers[len(numbers)-1] != total-1 {
			numbers, told = nextLine(t, lines, numbers, told)
		}
		if !slices.IsSorted(numbers) {
			t.Error("the lines are not in their order")
		}
		// Besides the refused recipients, the gate logs the message and some verdicts.
		dropped := droppedLines(t, asked)
		if told != dropped || len(numbers)+dropped < total || len(numbers) < 1000 {
			t.Errorf("%d of %d lines are there, the log tells of %d dropped ones, the metric of %d", len(numbers), total, told, dropped)
		}
		t.Logf("%d of %d lines came, %d were dropped", len(numbers), total, dropped)
		g.Stop()
	})
}

// nextLine reads the lines up to the next numbered recipient or notice of dropped lines.
func nextLine(t *testing.T, lines <-chan string, numbers []int, told int) ([]int, int) {
	t.Helper()
	var line string
	select {
	case line = <-lines:
	case <-time.After(harness.WorkTimeout):
		t.Fatalf("no more lines after %d", len(numbers))
	}
	r := harness.ParseRecord(line)
	if r.Text("msg") == "log lines dropped" {
		n, _ := r["dropped"].(float64)
		told += int(n)
	}
	if to, ok := strings.CutPrefix(r.Text("to"), "<n"); ok {
		n, err := strconv.Atoi(to[:6])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, told
}

// TestLogNotReadStop stops gates whose log nobody reads: by SIGTERM, and by a second one
// while a client is in a message.
func TestLogNotReadStop(t *testing.T) {
	t.Parallel()
	eachUnreadLog(t, func(t *testing.T, l *unreadLog) {
		g := startUnread(t, l, unreadSetup(t, l))
		c := harness.MustDial(t, g.Addr)
		flood(t, c, 0, 2000)
		g.Stop()

		g = startUnread(t, l, unreadSetup(t, l))
		busy, idle := harness.MustDial(t, g.Addr), harness.MustDial(t, g.Addr)
		flood(t, idle, 0, 2000)
		busy.Want(t, "MAIL FROM:<a@example.com>", "250")
		busy.Want(t, "RCPT TO:<b@example.net>", "250")
		busy.Want(t, "DATA", "354")
		g.Signal(syscall.SIGTERM)
		if reply, err := idle.Reply(); err != nil || !strings.HasPrefix(reply, "421") {
			t.Errorf("the idle client heard %q, %v", reply, err)
		}
		g.Stop() // otherwise the busy client has half an hour
		if reply, err := busy.Reply(); err != nil || !strings.HasPrefix(reply, "421") {
			t.Errorf("the busy client heard %q, %v", reply, err)
		}
	})
}

// TestLogNotReadHandover hands over a gate whose standard error nobody reads.
func TestLogNotReadHandover(t *testing.T) {
	t.Parallel()
	l := unreadPipe(t, 0)
	s := unreadSetup(t, l)
	dir := s.Dir(t)
	g := harness.LaunchSuccession(t, dir, []*os.File{l.stderr}, nil, harness.Program(t, "sh", "dash"), "-c", `exec "$0" serve 2>&3 3>&-`, harness.Binary(t))
	g.Addr = s.Listen
	harness.WaitFor(t, "the gate to answer", func() bool { return harness.Greets(g.Addr) })
	flood(t, harness.MustDial(t, g.Addr), 0, 500)
	g.Signal(syscall.SIGUSR2)
	g.Follow(successorOf(g, g.Process.Pid))
	flood(t, harness.MustDial(t, g.Addr), 0, 500)
	g.Stop()
	g.WantEnded(2)
}

// TestPipeOfCommand closes the pipe that a command writes to. The command ends by
// SIGPIPE, as other commands do, and prints nothing.
func TestPipeOfCommand(t *testing.T) {
	t.Parallel()
	r, w := rawPipe(t, 0)
	r.Close()
	cmd := exec.Command(harness.Binary(t), "config", "providers")
	cmd.Stdout = w
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Run() // only the signal counts
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
		t.Errorf("%v, and it said %q; want SIGPIPE, and nothing", cmd.ProcessState, stderr.String())
	}
}

// TestLogNotReadStart has a start fail when nobody reads the reason.
func TestLogNotReadStart(t *testing.T) {
	t.Parallel()
	l := unreadPipe(t, 0)
	dir := t.TempDir()
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), "[[list]\n")
	cmd := exec.Command("sh", "-c", `exec "$0" serve 2>&3 3>&-`, harness.Binary(t))
	cmd.ExtraFiles = []*os.File{l.stderr}
	g := harness.Launch(t, dir, cmd)
	if code := g.Wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for line := range l.read() {
		if line != "" {
			t.Errorf("the full pipe had room for %q", line)
		}
	}
}

// TestLogReaderGone closes the pipe of standard error. The gate serves on, and so does
// its successor.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	r, w := rawPipe(t, 0)
	dir := t.TempDir()
	s := harness.Setup{Listen: harness.FreeAddr(t)}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	g := harness.LaunchSuccession(t, dir, []*os.File{w}, nil, harness.Program(t, "sh", "dash"), "-c", `exec "$0" serve 2>&3 3>&-`, harness.Binary(t))
	g.Addr = s.Listen
	w.Close()
	lines := scanLines(r)
	for line := range lines {
		if harness.ParseRecord(line).Matches("listening", nil) {
			break
		}
	}
	r.Close()
	send := func() {
		t.Helper()
		c := harness.MustDial(t, g.Addr)
		for range 10 {
			c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "gone"))
			if reply, err := c.Verdict("a@spam.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, "550") {
				t.Errorf("a listed sender heard %q, %v", reply, err)
			}
		}
	}
	send()
	asked := g.SocketClient()
	// A read that was in progress may have taken some of the 20.
	harness.WaitFor(t, "the lines to be counted", func() bool { return droppedLines(t, asked) >= 10 })
	g.Signal(syscall.SIGUSR2)
	g.Follow(successorOf(g, g.Process.Pid))
	send()
	g.Stop()
	g.WantEnded(2)
}

// successorOf waits until the old process has ended, and returns its successor. The gate
// has nowhere to log it.
func successorOf(g *harness.Succession, old int) int {
	g.T.Helper()
	if r := g.WaitRecord("ended"); r.PID() != old || r["code"] != 0.0 {
		g.T.Fatalf("process %d ended with exit code %v, want %d with 0", r.PID(), r["code"], old)
	}
	response, err := g.SocketClient().Get("http://gate/v1/status")
	if err != nil {
		g.T.Fatal(err)
	}
	defer response.Body.Close()
	var status struct {
		PID int `json:"pid"`
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.PID == old {
		g.T.Fatalf("process %d answers: %v", status.PID, err)
	}
	return status.PID
}
