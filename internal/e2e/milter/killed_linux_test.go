package milter

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestKilled kills the gate in each state of a message. The mail server does what it is told
// to do without a milter: it defers the message, or passes it on once.
func TestKilled(t *testing.T) {
	for _, c := range []struct {
		name   string
		passes bool
		start  func(t testing.TB, milter string) mailServer
	}{
		{"postfix-tempfail", false, func(t testing.TB, milter string) mailServer {
			return startPostfix(t, milter, "milter_default_action = tempfail")
		}},
		{"postfix-accept", true, func(t testing.TB, milter string) mailServer {
			return startPostfix(t, milter, "milter_default_action = accept")
		}},
		{"sendmail-tempfail", false, func(t testing.TB, milter string) mailServer { return startSendmail(t, milter, "T") }},
		{"sendmail-accept", true, func(t testing.TB, milter string) mailServer { return startSendmail(t, milter, "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := harness.FreeAddr(t)
			dir := gateDir(t, addr, "")
			server := c.start(t, addr)
			var accepted []string
			for round := range harness.IfFull(1, 20) {
				for state := range len(stages) + 1 {
					g := serve(t, dir)
					name := fmt.Sprintf("killed-%d-%d", round, state)
					reply := sendKilling(t, g, server.addr, name, state)
					if passes := strings.HasPrefix(reply, "250"); passes != c.passes || !passes && reply[0] != '4' {
						t.Errorf("killed in state %d: %q", state, reply)
					} else if passes {
						accepted = append(accepted, name)
					}
				}
			}
			g := serve(t, dir) // without it no mail would pass to the end
			defer g.Stop()
			client := harness.MustDial(t, server.addr)
			client.MustSend(t, "a@clean.example", you, "Subject: last\r\n\r\nbody\r\n")
			copies := map[string]int{}
			for _, m := range server.settle(t, len(accepted)+1) {
				_, subject, _ := strings.Cut(string(m.Body), "Subject: ")
				subject, _, _ = strings.Cut(subject, "\r\n")
				copies[subject]++
			}
			for _, name := range append(accepted, "last") {
				if copies[name] != 1 {
					t.Errorf("%s: %d copies", name, copies[name])
				}
				delete(copies, name)
			}
			if len(copies) > 0 {
				t.Errorf("passed on, but not accepted: %v", copies)
			}
		})
	}
}

// stages are the commands of a message.
var stages = []string{"EHLO client.example", "MAIL FROM:<a@clean.example>", "RCPT TO:<" + you + ">", "DATA"}

// sendKilling sends a message, kills the gate before the command of that number, or while it
// judges the message, and returns the first refusal or the last reply.
func sendKilling(t *testing.T, g *harness.Gate, addr, name string, state int) string {
	t.Helper()
	c := harness.MustDial(t, addr)
	defer c.Close()
	for i, line := range stages {
		if i == state {
			g.Kill()
			g.Wait()
		}
		reply, err := c.Ask(line)
		if err != nil {
			t.Fatal(err)
		}
		if reply[0] != '2' && reply[0] != '3' {
			return reply
		}
	}
	if state == len(stages) {
		stop(t, g)
	}
	if _, err := io.WriteString(c, "Subject: "+name+"\r\nFrom: a@clean.example\r\n\r\nbody\r\n.\r\n"); err != nil {
		t.Fatal(err)
	}
	if state == len(stages) {
		g.Kill()
		g.Wait()
	}
	reply, err := c.Reply()
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// stop stops the gate's process, so that it takes what it is sent and answers nothing.
func stop(t *testing.T, g *harness.Gate) {
	t.Helper()
	g.Signal(syscall.SIGSTOP)
	harness.WaitFor(t, "the gate to stop", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Process.Pid))
		return err == nil && strings.Contains(string(status), "\nState:\tT")
	})
}
