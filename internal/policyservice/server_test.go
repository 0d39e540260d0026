package policyservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/door"
)

// recipient returns a question at RCPT.
func recipient(instance, sender, to string) string {
	return question([]string{"RCPT", instance, sender, to})
}

// want fails the test unless the next answer begins with a text.
func (p *postfix) want(t *testing.T, prefix string) string {
	t.Helper()
	action, err := p.answer()
	if err != nil || !strings.HasPrefix(action, prefix) {
		t.Fatalf("%q, %v; want %s", action, err, prefix)
	}
	return action
}

func (p *postfix) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		t.Fatal(err)
	}
}

// TestPieces: questions may come together, and in pieces.
func TestPieces(t *testing.T) {
	s := start(t, newChecker(t))
	p := s.dial()
	p.send(t, recipient("1", "a@clean.example", "b@example.net")+recipient("2", "a@reject.example", "b@example.net")+good[:100])
	p.want(t, dunno)
	p.want(t, "550 ")
	p.send(t, good[100:])
	p.want(t, dunno)
	for i := range good {
		p.send(t, good[i:i+1])
	}
	p.want(t, dunno)
}

// TestSockets: a TCP and a unix socket at a time, with one memory of messages.
func TestSockets(t *testing.T) {
	s := start(t, newChecker(t))
	dir, err := os.MkdirTemp("", "sgpolicy") // short, since it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var answers []string
	for _, addr := range []net.Addr{s.addr, s.listen("unix", filepath.Join(dir, "s"))} {
		s.addr = addr
		p := s.dial()
		p.send(t, recipient("1", "a@reject.example", "b@example.net"))
		answers = append(answers, p.want(t, "550 "))
	}
	if answers[0] != answers[1] {
		t.Errorf("%q", answers)
	}
}

// TestHangUp: a connection that does not ask as Postfix does ends without an answer, with one
// line in the log that tells why.
func TestHangUp(t *testing.T) {
	s := start(t, newChecker(t))
	for text, why := range map[string]string{
		"EHLO client.example\r\n": `a line without \"=\"`,
		"sender=a@b\n\n":          `the attribute \"request\" is missing`,
		"request=x\n\n":           `request=\"x\", want smtpd_access_policy`,
		"a=\x00\n":                "a NUL byte",
	} {
		p := s.dial()
		p.send(t, text)
		p.want(t, closed)
		s.mu.Lock()
		if log := s.lines.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, why) ||
			!strings.Contains(log, `"msg":"policy question not understood, connection closed"`) || !strings.Contains(log, p.LocalAddr().String()) {
			t.Errorf("%q: the log has %q", text, log)
		}
		s.lines.Reset()
		s.mu.Unlock()
	}
}

// TestManyConnections: questions about one message over connections at the same time have one
// id and one line in the log.
func TestManyConnections(t *testing.T) {
	s := start(t, newChecker(t))
	const connections, messages = 8, 20
	answers := make([][]string, connections)
	var wg sync.WaitGroup
	for c := range connections {
		p := s.dial()
		wg.Go(func() {
			for m := range messages {
				action, err := p.ask(recipient(fmt.Sprint(m), "a@reject.example", fmt.Sprintf("%d@example.net", c)))
				if err != nil {
					action = err.Error()
				}
				answers[c] = append(answers[c], action)
			}
		})
	}
	wg.Wait()
	for c := range connections {
		for m := range messages {
			if got := answers[c][m]; got != answers[0][m] || !strings.HasPrefix(got, "550 ") {
				t.Errorf("connection %d, message %d: %s, want %s", c, m, got, answers[0][m])
			}
		}
	}
	if n := strings.Count(s.takeLogged(t), "refused reject"); n != messages {
		t.Errorf("%d lines about %d messages", n, messages)
	}
	if n := strings.Count(s.takeCounted(), "beside:listed"); n != messages {
		t.Errorf("%d messages counted, want %d", n, messages)
	}
}

// TestApply: new lists and settings count from the next message on.
func TestApply(t *testing.T) {
	s := start(t, newChecker(t))
	p := s.dial()
	p.send(t, recipient("1", "a@reject.example", "b@example.net"))
	p.want(t, "550 ")
	settings := *s.door.Settings()
	settings.Policy.RejectText = "no"
	s.Apply(settings)
	p.send(t, recipient("1", "a@reject.example", "c@example.net"))
	p.want(t, "550 5.7.1 <a@reject.example> refused")
	p.send(t, recipient("2", "a@reject.example", "c@example.net"))
	p.want(t, "550 5.7.1 no")
}

// TestLimit: a connection too many is closed, and another one is served when there is room.
func TestLimit(t *testing.T) {
	s := start(t, newChecker(t))
	settings := *s.door.Settings()
	settings.MaxConnections = 1
	s.Apply(settings)
	first := s.dial()
	first.send(t, good)
	first.want(t, dunno)
	s.dial().want(t, closed)
	first.send(t, good)
	first.want(t, dunno)
	first.Close()
	for {
		p := s.dial()
		if action, err := p.ask(good); err == nil && action == dunno {
			return
		}
	}
}

// pipes is a listener for connections within a test.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// TestTimeouts: how long each state of a connection lasts, and what the log has of its end.
func TestTimeouts(t *testing.T) {
	lists := newChecker(t)
	for _, c := range []struct {
		what, sends string
		reads       bool
		lasts       time.Duration
		logged      string
	}{
		{"no question", "", true, idleTimeout, ""},
		{"one question", good, true, idleTimeout, ""},
		{"half a question", good[:100], true, questionTimeout, "policy question not understood, connection closed"},
		{"an answer that nobody reads", good, false, answerTimeout, "policy answer not sent"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{t: t}
			s.Server = New(door.Config{Name: "beside", Log: jsonLog(&s.record), Meter: &s.record}, door.Settings{Checker: lists})
			l := make(pipes)
			go s.Serve(l)
			ours, theirs := net.Pipe()
			began := time.Now()
			l <- theirs
			if _, err := io.WriteString(ours, c.sends); err != nil {
				t.Fatal(err)
			}
			if c.reads {
				if _, err := io.Copy(io.Discard, ours); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if got := time.Since(began); c.reads && got != c.lasts {
				t.Errorf("%s: the connection lasts %v, want %v", c.what, got, c.lasts)
			} else if got > c.lasts {
				t.Errorf("%s: Shutdown waits %v", c.what, got)
			}
			if logged := s.takeLogged(t); !strings.HasSuffix(logged, c.logged) || c.logged == "" && strings.Contains(logged, "policy") {
				t.Errorf("%s: logged %q, want %q", c.what, logged, c.logged)
			}
		})
	}
}

// TestShutdown: idle connections end at once, a question that has begun gets its answer, and
// when time is up it is cut off.
func TestShutdown(t *testing.T) {
	lists := newChecker(t)
	for _, patient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{t: t}
			s.Server = New(door.Config{Name: "beside", Log: jsonLog(&s.record)}, door.Settings{Checker: lists})
			l := make(pipes)
			go s.Serve(l)
			var clients []net.Conn
			for range 2 {
				ours, theirs := net.Pipe()
				l <- theirs
				clients = append(clients, ours)
			}
			idle, busy := clients[0], clients[1]
			io.WriteString(busy, good[:100])
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- s.Shutdown(ctx) }()
			if _, err := idle.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the idle connection: %v", err)
			}
			synctest.Wait()
			if !patient {
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("Shutdown: %v", err)
				}
				if logged := s.takeLogged(t); logged != "" {
					t.Errorf("logged %q", logged)
				}
				return
			}
			io.WriteString(busy, good[100:])
			if answer, err := io.ReadAll(busy); err != nil || string(answer) != "action=DUNNO\n\n" {
				t.Errorf("%q, %v", answer, err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
