package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// setup is what a gate is started with. The zero setup has one list, blocked,
// in blocked.txt, and delivers into a Maildir.
type setup struct {
	listen  string            // default 127.0.0.1:0
	nextHop string            // default "maildir:mail"
	noReuse bool              // a connection to the next hop for each message
	keys    map[string]string // further TOML, lines by table: "listen", "next_hop", "log"
	more    string            // further TOML, tables only
	lists   string            // in place of the table of the list blocked
	files   map[string]string // by path in the gate's directory

	nextHops []string // several, in place of nextHop
	hostname string   // default gate.example
}

// blockedLists is the table of the list blocked.
const blockedLists = `
[[list]]
name = "blocked"
path = "blocked.txt"
`

func (s setup) config() string {
	orElse := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	nextHop := strconv.Quote(orElse(s.nextHop, "maildir:mail"))
	if s.nextHops != nil {
		nextHop = `["` + strings.Join(s.nextHops, `", "`) + `"]`
	}
	return fmt.Sprintf(`hostname = %q
[listen]
addr = %q
%s
[next_hop]
addr = %s
reuse = %t
%s
[log]
format = "json"
%s
%s
%s
`, orElse(s.hostname, "gate.example"), orElse(s.listen, "127.0.0.1:0"), s.keys["listen"], nextHop, !s.noReuse, s.keys["next_hop"], s.keys["log"], s.more, orElse(s.lists, blockedLists))
}

// gate is a running spamgate process.
type gate struct {
	t       testing.TB
	dir     string
	addr    string // "127.0.0.1:4711"
	log     *lines
	process *os.Process
	exited  chan int // its exit code, once
	kill    func()   // ends it at once, with all that it has started
	ended   bool
}

// startGate starts a gate that listens, and ends with the test.
func startGate(t testing.TB, s setup) *gate {
	t.Helper()
	g := launchGate(t, s)
	g.addr = g.waitListening()
	return g
}

// launchGate starts a gate, which need not come as far as to listen.
func launchGate(t testing.TB, s setup) *gate {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "config.toml"), s.config())
	if s.lists == "" && s.files["blocked.txt"] == "" {
		writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail\n")
	}
	for name, text := range s.files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return launch(t, dir, exec.Command(binary(t), "serve"))
}

// launch runs a command that is a gate in a directory.
func launch(t testing.TB, dir string, cmd *exec.Cmd) *gate {
	t.Helper()
	g := &gate{t: t, dir: dir, exited: make(chan int, 1), log: newLines(t, "gate")}
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = g.log, g.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.process = cmd.Process
	g.kill = func() { cmd.Process.Kill() }
	go func() {
		cmd.Wait() // the exit code says what there is to say
		g.log.end()
		g.exited <- cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		if !g.ended {
			g.stop()
		}
	})
	return g
}

// waitListening waits until the gate says where it listens.
func (g *gate) waitListening() string {
	g.t.Helper()
	return g.waitRecord("listening").string("addr")
}

func (g *gate) signal(s syscall.Signal) {
	g.t.Helper()
	if err := g.process.Signal(s); err != nil {
		g.t.Errorf("signal %v: %v", s, err)
	}
}

// wait waits for the end of the process and returns its exit code.
func (g *gate) wait() int {
	g.t.Helper()
	g.ended = true
	select {
	case code := <-g.exited:
		return code
	case <-time.After(lateLimit):
		g.kill()
		<-g.exited
		g.t.Errorf("the gate did not end within %v", lateLimit)
		return -1
	}
}

// stop ends the gate in good order.
func (g *gate) stop() {
	g.t.Helper()
	g.signal(syscall.SIGTERM)
	if code := g.wait(); code != 0 {
		g.t.Errorf("exit code %d after SIGTERM", code)
	}
	if strings.Contains(g.log.String(), "DATA RACE") {
		g.t.Error("the race detector has something to say")
	}
}

// record is one line of the gate's log.
type record map[string]any

func (r record) string(key string) string {
	s, _ := r[key].(string)
	return s
}

func parseRecord(line string) record {
	var r record
	if json.Unmarshal([]byte(line), &r) != nil {
		return nil
	}
	return r
}

// waitRecord waits for the first line of the log with a message text, and with
// the given values: "key", "value", ….
func (g *gate) waitRecord(msg string, with ...string) record {
	g.t.Helper()
	line := g.log.wait(fmt.Sprintf("%q %q", msg, with), func(line string) bool {
		return parseRecord(line).matches(msg, with)
	})
	return parseRecord(line)
}

// records are the lines of the log so far with a message text and values.
func (g *gate) records(msg string, with ...string) []record {
	var found []record
	for line := range strings.Lines(g.log.String()) {
		if r := parseRecord(line); r.matches(msg, with) {
			found = append(found, r)
		}
	}
	return found
}

func (r record) matches(msg string, with []string) bool {
	if r.string("msg") != msg {
		return false
	}
	for i := 0; i+1 < len(with); i += 2 {
		if fmt.Sprint(r[with[i]]) != with[i+1] {
			return false
		}
	}
	return true
}
