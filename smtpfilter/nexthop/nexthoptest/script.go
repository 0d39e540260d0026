package nexthoptest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Script is a next hop that plays a written dialogue, one step a line:
//
//	S: 250 2.1.0 Ok          sends the line and CRLF
//	S! "250 ok\n"            sends the bytes of a Go string, and nothing more
//	S: [cut]                 also [reset], [silence]
//	S: [hold]                waits for a call of Go
//	S: [tls]                 begins TLS, as the server
//	S: [tls 1.1]             the same with a server that knows no newer TLS
//	S: [tls fails]           begins TLS, which the client must break off
//	C: RCPT TO:<b@x.example> expects exactly this line, ended by CRLF
//	C: MAIL FROM:*           expects a line that begins so
//	C: [message]             expects lines up to and with the line "."
//	C: [close]               expects the client to close without another byte
//	C! "PROXY \x00"          expects the bytes of a Go string
//	---                      the next connection's dialogue begins
//
// Lines that are empty or begin with '#' are comments. A dialogue that does not
// end in a directive ends as with "C: [close]". What differs from the script
// fails the test, and so does a script that is not played to its end.
type Script struct {
	server
	dialogues [][]step
	held      chan struct{}
	played    int // dialogues that are over; guarded by server.mu
}

// step is one line of a dialogue.
type step struct {
	line int    // in the script, for messages
	kind string // "C:", "C!", "S:" or "S!"
	text string
}

// NewScript starts a Script on a free port of 127.0.0.1.
func NewScript(t testing.TB, text string) *Script {
	t.Helper()
	dialogues, err := parseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	s := &Script{dialogues: dialogues, held: make(chan struct{})}
	s.start(t, s.play)
	t.Cleanup(s.finish) // runs before Close
	return s
}

func parseScript(text string) ([][]step, error) {
	dialogues := [][]step{nil}
	for i, line := range strings.Split(text, "\n") {
		switch {
		case line == "" || line[0] == '#':
			continue
		case strings.HasPrefix(line, "---"):
			dialogues = append(dialogues, nil)
			continue
		case len(line) < 2:
			return nil, fmt.Errorf("script line %d: %q", i+1, line)
		}
		s := step{line: i + 1, kind: line[:2], text: strings.TrimPrefix(line[2:], " ")}
		switch s.kind {
		case "C:", "S:":
		case "S!", "C!":
			raw, err := strconv.Unquote(s.text)
			if err != nil {
				return nil, fmt.Errorf("script line %d: %w", i+1, err)
			}
			s.text = raw
		default:
			return nil, fmt.Errorf("script line %d: C:, C!, S: or S! wanted, not %q", i+1, line)
		}
		last := len(dialogues) - 1
		dialogues[last] = append(dialogues[last], s)
	}
	return dialogues, nil
}

// Go lets one dialogue continue that is held, or will be.
func (s *Script) Go() {
	s.t.Helper()
	select {
	case s.held <- struct{}{}:
	case <-time.After(waitLimit):
		s.t.Errorf("script: no dialogue is held")
	}
}

// Wait waits until every dialogue of the script has been played.
func (s *Script) Wait() {
	s.t.Helper()
	s.wait("the script to end", func() bool { return s.played >= len(s.dialogues) })
}

// finish fails the test when part of the script was not played. It gives a
// connection that is closing the time to be seen as closed.
func (s *Script) finish() {
	s.t.Helper()
	s.WaitConns(0)
	if n := s.Conns(); n < len(s.dialogues) {
		s.t.Errorf("script: %d connections came, %d are written", n, len(s.dialogues))
	}
}

// play plays the n-th dialogue.
func (s *Script) play(n int, c net.Conn) {
	defer func() {
		s.mu.Lock()
		s.played++
		s.changed.Broadcast()
		s.mu.Unlock()
	}()
	if n > len(s.dialogues) {
		s.t.Errorf("script: connection %d came, %d are written", n, len(s.dialogues))
		return
	}
	steps := s.dialogues[n-1]
	p := &player{conn: c, in: bufio.NewReader(c), held: s.held}
	for _, step := range steps {
		err := p.play(step)
		if errors.Is(err, errEnded) {
			return
		}
		if err != nil {
			s.t.Errorf("script line %d (%s %s), connection %d: %v", step.line, step.kind, step.text, n, err)
			return
		}
	}
	if err := p.expectClose(); err != nil {
		s.t.Errorf("script, connection %d, after its last line: %v", n, err)
	}
}

// player plays the steps of one connection.
type player struct {
	conn net.Conn
	in   *bufio.Reader
	held chan struct{}
}

func (p *player) play(s step) error {
	p.conn.SetReadDeadline(time.Now().Add(waitLimit))
	if s.kind == "C:" {
		return p.expect(s.text)
	}
	if s.kind == "C!" {
		got := make([]byte, len(s.text))
		if n, err := io.ReadFull(p.in, got); err != nil || string(got) != s.text {
			return fmt.Errorf("received %q, %v", got[:n], err)
		}
		return nil
	}
	if s.kind == "S!" {
		_, err := io.WriteString(p.conn, s.text)
		return err
	}
	switch s.text {
	case "[hold]":
		select {
		case <-p.held:
			return nil
		case <-time.After(waitLimit):
			return errors.New("held for too long")
		}
	case "[tls]", "[tls 1.1]", "[tls fails]":
		return p.startTLS(s.text)
	case Cut:
		return errEnded
	case Reset:
		reset(p.conn)
		return errEnded
	case Silence:
		io.Copy(io.Discard, p.in)
		return errEnded
	}
	_, err := io.WriteString(p.conn, s.text+"\r\n")
	return err
}

// startTLS begins TLS in one of the ways of a Script.
func (p *player) startTLS(way string) error {
	config := authority().server
	if way == "[tls 1.1]" {
		config = config.Clone()
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}
	c := tls.Server(bufferedConn{p.conn, p.in}, config)
	err := c.Handshake()
	if way == "[tls]" {
		p.conn, p.in = c, bufio.NewReader(c)
		return err
	}
	if err == nil { // in TLS 1.3 the client has the last word
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil {
		return errors.New("the client has gone on inside TLS")
	}
	return errEnded
}

// bufferedConn is a connection of which a part was read already.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }

func (p *player) expect(want string) error {
	switch want {
	case "[close]":
		if err := p.expectClose(); err != nil {
			return err
		}
		return errEnded
	case "[message]":
		for {
			line, err := p.in.ReadString('\n')
			if err != nil || line == ".\r\n" {
				return err
			}
		}
	}
	got, err := p.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("received %q, then %w", got, err)
	}
	line, crlf := strings.CutSuffix(got, "\r\n")
	prefix, open := strings.CutSuffix(want, "*")
	if !crlf || line != want && !(open && strings.HasPrefix(line, prefix)) {
		return fmt.Errorf("received %q", got)
	}
	return nil
}

// expectClose waits for the connection's end: EOF, or a reset where the client
// closed with replies unread.
func (p *player) expectClose() error {
	p.conn.SetReadDeadline(time.Now().Add(waitLimit))
	rest, err := io.ReadAll(p.in)
	if len(rest) > 0 {
		return fmt.Errorf("received %q instead of the connection's end", rest)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection is still open: %w", err)
	}
	return nil
}
