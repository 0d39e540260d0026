package harness

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

// A Setup describes a gate. The gate of the zero Setup has one list, blocked, in
// blocked.txt, and delivers into a Maildir.
type Setup struct {
	Listen  string            // default 127.0.0.1:0; NoListener: none
	NextHop string            // default "maildir:mail"
	NoReuse bool              // connect to the next hop for each message
	Keys    map[string]string // more lines of the tables "listen", "next_hop" and "log"
	Tables  string            // more TOML, whole tables only
	Lists   string            // replaces BlockedLists
	Files   map[string]string // contents, by path in the gate's directory

	NextHops []string // replace NextHop
	Hostname string   // default gate.example
}

// NoListener as Setup.Listen is for a gate with doors only.
const NoListener = "none"

// BlockedLists is the table of the list blocked.
const BlockedLists = `
[[list]]
name = "blocked"
path = "blocked.txt"
`

// Config returns the text of config.toml.
func (s Setup) Config() string {
	orElse := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	listen := strconv.Quote(orElse(s.Listen, "127.0.0.1:0"))
	if s.Listen == NoListener {
		listen = "[]"
	}
	nextHop := strconv.Quote(orElse(s.NextHop, "maildir:mail"))
	if s.NextHops != nil {
		nextHop = `["` + strings.Join(s.NextHops, `", "`) + `"]`
	}
	return fmt.Sprintf(`hostname = %q
[listen]
addr = %s
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
`, orElse(s.Hostname, "gate.example"), listen, s.Keys["listen"], nextHop, !s.NoReuse, s.Keys["next_hop"], s.Keys["log"], s.Tables, orElse(s.Lists, BlockedLists))
}

// A Gate is a running spamgate process.
type Gate struct {
	T       testing.TB
	Dir     string
	Addr    string // "127.0.0.1:4711"
	Log     *Output
	Process *os.Process
	Exited  chan int // gets its exit code
	Kill    func()   // kills it and all that it has started
	Ended   bool

	Server *Gate // spamgate-fleetd, which runs with the gate's file; nil: none does
}

// StartGate starts a gate, waits until it listens, and stops it at the end of the test.
func StartGate(t testing.TB, s Setup) *Gate {
	t.Helper()
	g := LaunchGate(t, s)
	g.Addr = g.WaitListening()
	return g
}

// LaunchGate starts a gate that may end before it listens.
func LaunchGate(t testing.TB, s Setup) *Gate {
	t.Helper()
	return Launch(t, s.Dir(t), exec.Command(Binary(t), "serve"))
}

// Dir writes the gate's files into a new directory and returns it.
func (s Setup) Dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	WriteFile(t, filepath.Join(dir, "config.toml"), s.Config())
	if s.Lists == "" && s.Files["blocked.txt"] == "" {
		WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail\n")
	}
	for name, text := range s.Files {
		WriteFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

// Serve starts a gate in a directory that has its files, and waits until it listens.
func Serve(t testing.TB, dir string) *Gate {
	t.Helper()
	g := Launch(t, dir, exec.Command(Binary(t), "serve"))
	g.Addr = g.WaitListening()
	return g
}

// Launch runs a command that is a gate in the directory dir.
func Launch(t testing.TB, dir string, cmd *exec.Cmd) *Gate {
	t.Helper()
	g := &Gate{T: t, Dir: dir, Exited: make(chan int, 1), Log: NewOutput(t, "gate")}
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = g.Log, g.Log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.Process = cmd.Process
	g.Kill = func() { cmd.Process.Kill() }
	go func() {
		cmd.Wait() // the exit code tells it
		g.Log.End()
		g.Exited <- cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		if !g.Ended {
			g.Stop()
		}
	})
	return g
}

// LaunchFleetd runs spamgate-fleetd in a directory that has its files, as [Launch] runs a gate.
func LaunchFleetd(t testing.TB, dir string) *Gate {
	t.Helper()
	return Launch(t, dir, exec.Command(FleetdBinary(t)))
}

// WaitListening waits until the gate listens and returns its addresses.
func (g *Gate) WaitListening() string {
	g.T.Helper()
	return g.WaitRecord("listening").Text("addr")
}

// Signal sends the gate a signal.
func (g *Gate) Signal(s syscall.Signal) {
	g.T.Helper()
	if err := g.Process.Signal(s); err != nil {
		g.T.Errorf("signal %v: %v", s, err)
	}
}

// Wait waits for the end of the process and returns its exit code.
func (g *Gate) Wait() int {
	g.T.Helper()
	g.Ended = true
	select {
	case code := <-g.Exited:
		return code
	case <-time.After(WorkTimeout):
		g.Kill()
		<-g.Exited
		g.T.Errorf("the gate did not end within %v", WorkTimeout)
		return -1
	}
}

// Stop stops the gate with SIGTERM and checks that its exit code is 0.
func (g *Gate) Stop() {
	g.T.Helper()
	g.Signal(syscall.SIGTERM)
	if code := g.Wait(); code != 0 {
		g.T.Errorf("exit code %d after SIGTERM", code)
	}
	if strings.Contains(g.Log.String(), "DATA RACE") {
		g.T.Error("the race detector has found a data race")
	}
}

// A Record is a line of the gate's log.
type Record map[string]any

// Text returns the value of a key, or "" if it is not a string.
func (r Record) Text(key string) string {
	s, _ := r[key].(string)
	return s
}

// ParseRecord parses a line of the log. It returns nil for any other line.
func ParseRecord(line string) Record {
	var r Record
	if json.Unmarshal([]byte(line), &r) != nil {
		return nil
	}
	return r
}

// WaitRecord waits for the first line of the log with that message text and those
// values: "key", "value", ….
func (g *Gate) WaitRecord(msg string, with ...string) Record {
	g.T.Helper()
	line := g.Log.Wait(fmt.Sprintf("%q %q", msg, with), func(line string) bool {
		return ParseRecord(line).Matches(msg, with)
	})
	return ParseRecord(line)
}

// Records returns the lines of the log so far with that message text and those values.
func (g *Gate) Records(msg string, with ...string) []Record {
	var found []Record
	for line := range strings.Lines(g.Log.String()) {
		if r := ParseRecord(line); r.Matches(msg, with) {
			found = append(found, r)
		}
	}
	return found
}

// Matches reports whether the line has that message text and those values.
func (r Record) Matches(msg string, with []string) bool {
	if r.Text("msg") != msg {
		return false
	}
	for i := 0; i+1 < len(with); i += 2 {
		if fmt.Sprint(r[with[i]]) != with[i+1] {
			return false
		}
	}
	return true
}
