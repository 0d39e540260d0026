package e2e

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
)

// longest is a local part of 64 characters.
var longest = strings.Repeat("x", 64)

// flood has the gate log n refusals, of recipients with numbers from first on.
func flood(t *testing.T, c *client, first, n int) {
	t.Helper()
	c.want(t, "MAIL FROM:<"+longest+"@spam.example>", "250")
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
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "550 5.7.1 ") {
			t.Fatalf("a refused recipient heard %q, %v", reply, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	c.want(t, "RSET", "250")
}

// droppedLines is the metric of a gate.
func droppedLines(t *testing.T, client *http.Client) int {
	t.Helper()
	family := metrics(t, client, "http://gate/metrics")["spamgate_log_lines_dropped_total"]
	if family == nil {
		t.Fatal("no metric of dropped lines")
	}
	return int(family.Metric[0].GetCounter().GetValue())
}

// TestLogNotRead has logs that nobody reads. Clients get their replies until lines
// are dropped and beyond, SIGHUP is a reload; and once somebody reads there is each
// line, in its order, but for those that were dropped, which are counted.
func TestLogNotRead(t *testing.T) {
	t.Parallel()
	eachDeafLog(t, func(t *testing.T, l *deafLog) {
		s := deafSetup(t, l)
		g := startDeaf(t, l, s)
		c := mustDial(t, g.addr)
		c.want(t, "EHLO "+strings.Repeat(longest[:60]+".", 4)+"example", "250")
		asked := g.socketClient()
		const block = 500
		total := 0
		for ; droppedLines(t, asked) == 0; total += block {
			if total > 200*block {
				t.Fatalf("%d lines, and none was dropped", total)
			}
			flood(t, c, total, block)
		}
		reply := c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "deaf"))
		if !strings.HasPrefix(reply, "250 ") {
			t.Errorf("a message was answered with %q", reply)
		}
		s.more = "[policy]\ncontact = \"reloaded\"\n"
		writeFile(t, filepath.Join(g.dir, "config.toml"), s.config())
		g.signal(syscall.SIGHUP)
		await(t, "the reload", func() bool {
			reply, err := c.verdict("a@spam.example", "b@example.net")
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
		// All that comes now is there, behind the notice.
		flood(t, c, total, block)
		total += block
		for len(numbers) == 0 || numbers[len(numbers)-1] != total-1 {
			numbers, told = nextLine(t, lines, numbers, told)
		}
		if !slices.IsSorted(numbers) {
			t.Error("the lines are not in their order")
		}
		// Beside the refused recipients, the message and some verdicts were logged.
		dropped := droppedLines(t, asked)
		if told != dropped || len(numbers)+dropped < total || len(numbers) < 1000 {
			t.Errorf("%d of %d lines are there, the log tells of %d dropped ones, the metric of %d", len(numbers), total, told, dropped)
		}
		t.Logf("%d of %d lines came, %d were dropped", len(numbers), total, dropped)
		g.stop()
	})
}

// nextLine takes a line of the log: a numbered recipient, or a notice.
func nextLine(t *testing.T, lines <-chan string, numbers []int, told int) ([]int, int) {
	t.Helper()
	var line string
	select {
	case line = <-lines:
	case <-time.After(lateLimit):
		t.Fatalf("no more lines after %d", len(numbers))
	}
	r := parseRecord(line)
	if r.string("msg") == "log lines dropped" {
		n, _ := r["dropped"].(float64)
		told += int(n)
	}
	if to, ok := strings.CutPrefix(r.string("to"), "<n"); ok {
		n, err := strconv.Atoi(to[:6])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		numbers = append(numbers, n)
	}
	return numbers, told
}

// TestLogNotReadStop stops gates whose log nobody reads: by SIGTERM, and by a
// second one while a client is inside a message.
func TestLogNotReadStop(t *testing.T) {
	t.Parallel()
	eachDeafLog(t, func(t *testing.T, l *deafLog) {
		g := startDeaf(t, l, deafSetup(t, l))
		c := mustDial(t, g.addr)
		flood(t, c, 0, 2000)
		g.stop()

		g = startDeaf(t, l, deafSetup(t, l))
		busy, idle := mustDial(t, g.addr), mustDial(t, g.addr)
		flood(t, idle, 0, 2000)
		busy.want(t, "MAIL FROM:<a@example.com>", "250")
		busy.want(t, "RCPT TO:<b@example.net>", "250")
		busy.want(t, "DATA", "354")
		g.signal(syscall.SIGTERM)
		if reply, err := idle.reply(); err != nil || !strings.HasPrefix(reply, "421") {
			t.Errorf("the idle client heard %q, %v", reply, err)
		}
		g.stop() // the busy one has half an hour otherwise
		if reply, err := busy.reply(); err != nil || !strings.HasPrefix(reply, "421") {
			t.Errorf("the busy client heard %q, %v", reply, err)
		}
	})
}

// TestLogNotReadHandover hands a gate over whose standard error nobody reads.
func TestLogNotReadHandover(t *testing.T) {
	t.Parallel()
	l := deafPipe(t, 0)
	s := deafSetup(t, l)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	g := launchReaped(t, dir, []*os.File{l.stderr}, nil, tool(t, "sh", "dash"), "-c", `exec "$0" serve 2>&3 3>&-`, binary(t))
	g.addr = s.listen
	pollFor(t, "the gate to answer", func() bool { return greets(g.addr) })
	flood(t, mustDial(t, g.addr), 0, 500)
	g.signal(syscall.SIGUSR2)
	g.follow(g.successorOf(g.process.Pid))
	flood(t, mustDial(t, g.addr), 0, 500)
	g.stop()
	g.wantEnded(2)
}

// TestPipeOfCommand has the reader of a command's output go away: the command ends
// by SIGPIPE, as others do, and says nothing.
func TestPipeOfCommand(t *testing.T) {
	t.Parallel()
	r, w := rawPipe(t, 0)
	r.Close()
	cmd := exec.Command(binary(t), "config", "providers")
	cmd.Stdout = w
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Run() // the signal is what counts
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGPIPE || stderr.Len() > 0 {
		t.Errorf("%v, and it said %q; want SIGPIPE, and nothing", cmd.ProcessState, stderr.String())
	}
}

// TestLogNotReadStart has a start fail whose reason nobody reads.
func TestLogNotReadStart(t *testing.T) {
	t.Parallel()
	l := deafPipe(t, 0)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), "[[list]\n")
	cmd := exec.Command("sh", "-c", `exec "$0" serve 2>&3 3>&-`, binary(t))
	cmd.ExtraFiles = []*os.File{l.stderr}
	g := launch(t, dir, cmd)
	if code := g.wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for line := range l.read() {
		if line != "" {
			t.Errorf("the full pipe had room for %q", line)
		}
	}
}

// TestLogReaderGone takes the reader of standard error away. The gate serves on, and
// so does the process that it hands over to.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	r, w := rawPipe(t, 0)
	dir := t.TempDir()
	s := setup{listen: freeAddr(t)}
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	g := launchReaped(t, dir, []*os.File{w}, nil, tool(t, "sh", "dash"), "-c", `exec "$0" serve 2>&3 3>&-`, binary(t))
	g.addr = s.listen
	w.Close()
	lines := scanLines(r)
	for line := range lines {
		if parseRecord(line).matches("listening", nil) {
			break
		}
	}
	r.Close()
	send := func() {
		t.Helper()
		c := mustDial(t, g.addr)
		for range 10 {
			c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "gone"))
			if reply, err := c.verdict("a@spam.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, "550") {
				t.Errorf("a listed sender heard %q, %v", reply, err)
			}
		}
	}
	send()
	asked := g.socketClient()
	// A read that was under way has taken some of the 20 yet.
	await(t, "the lines to be counted", func() bool { return droppedLines(t, asked) >= 10 })
	g.signal(syscall.SIGUSR2)
	g.follow(g.successorOf(g.process.Pid))
	send()
	g.stop()
	g.wantEnded(2)
}

// successorOf waits until the present process has ended, which hands over and has
// nowhere to say so, and returns the other one.
func (g *succession) successorOf(old int) int {
	g.t.Helper()
	if r := g.waitRecord("ended"); r.pid() != old || r["code"] != 0.0 {
		g.t.Fatalf("process %d ended with exit code %v, want %d with 0", r.pid(), r["code"], old)
	}
	response, err := g.socketClient().Get("http://gate/v1/status")
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	var status struct {
		PID int `json:"pid"`
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.PID == old {
		g.t.Fatalf("process %d answers: %v", status.PID, err)
	}
	return status.PID
}
