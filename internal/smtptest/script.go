package smtptest

import (
	"net"
	"testing"
	"time"
)

// Script is a server that plays the server's side of a dialogue, and fails the
// test when the client differs from it or does not play it to its end. A
// connection ends as with "C [close]" unless the dialogue says otherwise.
type Script struct {
	server
	conns  [][]Line // the steps of each connection
	held   chan struct{}
	played int // connections that are over; guarded by server.mu
}

// NewScript starts a Script on a free port of 127.0.0.1. A Peer must be able to
// play all steps.
func NewScript(t testing.TB, steps []Line) *Script {
	t.Helper()
	s := &Script{conns: [][]Line{nil}, held: make(chan struct{})}
	for _, l := range steps {
		if l.Verb == "C" && l.Text == "[connect]" {
			s.conns = append(s.conns, nil)
			continue
		}
		if !l.OnWire() {
			t.Fatalf("script line %d: unknown step %s %s", l.Number, l.Verb, l.Text)
		}
		last := len(s.conns) - 1
		s.conns[last] = append(s.conns[last], l)
	}
	s.start(t, false, s.play)
	t.Cleanup(s.finish) // runs before Close
	return s
}

// Continue ends one HOLD, which is under way or to come.
func (s *Script) Continue() {
	s.t.Helper()
	select {
	case s.held <- struct{}{}:
	case <-time.After(waitLimit):
		s.t.Errorf("script: no connection is held")
	}
}

// Wait waits until the script has been played to its end.
func (s *Script) Wait() {
	s.t.Helper()
	s.wait("the script to end", func() bool { return s.played >= len(s.conns) })
}

// finish fails the test when part of the script was not played.
func (s *Script) finish() {
	s.t.Helper()
	s.WaitConns(0)
	if n := s.Conns(); n < len(s.conns) {
		s.t.Errorf("script: %d connections came, %d are written", n, len(s.conns))
	}
}

// play plays the n-th connection.
func (s *Script) play(n int, c net.Conn) {
	defer func() {
		s.mu.Lock()
		s.played++
		s.changed.Broadcast()
		s.mu.Unlock()
	}()
	if n > len(s.conns) {
		s.t.Errorf("script: connection %d came, %d are written", n, len(s.conns))
		return
	}
	p := newPeer(c, 'S')
	p.held = s.held
	for _, l := range s.conns[n-1] {
		if err := p.Play(l); err != nil {
			s.t.Errorf("script line %d (%s %s), connection %d: %v", l.Number, l.Verb, l.Text, n, err)
			return
		}
	}
	if err := p.Play(Line{Verb: "C", Text: Close}); err != nil {
		s.t.Errorf("script, connection %d, after its last line: %v", n, err)
	}
}
