package smtptest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// peerVerbs are the verbs of the lines that a Peer plays.
var peerVerbs = []string{"C", "S", "C!", "S!", "E", "TLS", "HOLD"}

// OnWire reports whether a Peer plays the line.
func (l Line) OnWire() bool { return slices.Contains(peerVerbs, l.Verb) }

// Peer plays one side of a dialogue on a connection.
type Peer struct {
	Conn   net.Conn
	In     *bufio.Reader // reads from Conn
	side   byte          // 'C' or 'S'
	raw    net.Conn      // Conn, or the connection below its TLS
	closed bool          // by this side
	held   chan struct{}
}

// NewClient returns a Peer that plays the client.
func NewClient(c net.Conn) *Peer { return newPeer(c, 'C') }

func newPeer(c net.Conn, side byte) *Peer {
	p := &Peer{side: side, raw: c}
	p.Use(c)
	return p
}

// Use continues the dialogue on another connection: TLS over the old one.
func (p *Peer) Use(c net.Conn) {
	p.Conn, p.In = c, bufio.NewReader(c)
}

// Play plays one line.
func (p *Peer) Play(l Line) error {
	p.Conn.SetDeadline(time.Now().Add(waitLimit))
	switch l.Verb {
	case "C", "S":
		if l.Verb[0] == p.side {
			return p.say(l.Text)
		}
		return p.expect(l.Text)
	case "C!", "S!":
		text := Expand(l.Text)
		if l.Verb[0] == p.side {
			return p.write(text)
		}
		got := make([]byte, len(text))
		if n, err := io.ReadFull(p.In, got); err != nil || string(got) != text {
			return fmt.Errorf("received %q, %v", got[:n], err)
		}
		return nil
	case "E":
		return p.expectExtensions(strings.Split(l.Text, ","))
	case "TLS":
		return p.startTLS(l.Text)
	case "HOLD":
		select {
		case <-p.held:
			return nil
		case <-time.After(waitLimit):
			return errors.New("held for too long")
		}
	}
	return errors.New("unknown step")
}

// PlayAll plays steps that are not from a file, up to the first error.
func (p *Peer) PlayAll(steps ...string) error {
	for _, l := range Parse("", strings.Join(steps, "\n")).Steps {
		if err := p.Play(l); err != nil {
			return fmt.Errorf("%s %s: %w", l.Verb, l.Text, err)
		}
	}
	return nil
}

func (p *Peer) write(s string) error {
	_, err := io.WriteString(p.Conn, s)
	return err
}

// say sends a line, or carries out a directive.
func (p *Peer) say(line string) error {
	switch line {
	case Close, Reset, Silence:
		obey(line, p.raw, p.In)
		p.closed = true
		p.raw.Close()
		return nil
	}
	return p.write(line + "\r\n")
}

// obey carries out a directive on a connection that the caller closes next. It
// reads from in.
func obey(directive string, c net.Conn, in io.Reader) {
	switch directive {
	case Silence:
		io.Copy(io.Discard, in)
	case Reset:
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.Close()
	}
}

// expect reads a line, or what a directive stands for.
func (p *Peer) expect(want string) error {
	switch want {
	case Close:
		return p.expectClose()
	case "[alert]":
		b, err := io.ReadAll(p.In)
		if len(b) > 7 || len(b) > 0 && b[0] != 21 || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("received %q, %v; want an alert of TLS at most", b, err)
		}
		return nil
	case "[message]":
		for {
			line, err := p.In.ReadString('\n')
			if err != nil || line == ".\r\n" {
				return err
			}
		}
	}
	got, err := p.In.ReadString('\n')
	if err != nil {
		return fmt.Errorf("received %q, then %w", got, err)
	}
	if line, crlf := strings.CutSuffix(got, "\r\n"); !crlf || !Match(want, line) {
		return fmt.Errorf("received %q", got)
	}
	return nil
}

// expectClose waits until the other side closes the connection without another
// byte. It accepts a reset: this side's last bytes may be unread.
func (p *Peer) expectClose() error {
	if p.closed {
		return nil
	}
	rest, err := io.ReadAll(p.In)
	if len(rest) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("received %q, %v; want the end of the connection", rest, err)
	}
	return nil
}

// expectExtensions reads the reply to EHLO.
func (p *Peer) expectExtensions(keywords []string) error {
	for line := range strings.SplitSeq(ehloReply("gate.example", keywords), "\n") {
		if err := p.expect(line); err != nil {
			return err
		}
	}
	return nil
}

// ehloReply returns the lines of a reply to EHLO.
func ehloReply(host string, keywords []string) string {
	lines := slices.Concat([]string{host}, keywords)
	for i := range lines {
		separator := "-"
		if i == len(lines)-1 {
			separator = " "
		}
		lines[i] = "250" + separator + lines[i]
	}
	return strings.Join(lines, "\n")
}

// startTLS begins TLS: "" for the usual way, or "1.1" or "fails".
func (p *Peer) startTLS(how string) error {
	server, client := ServerTLS(), &tls.Config{RootCAs: Roots(), ServerName: ServerName}
	if how == "1.1" {
		server = server.Clone()
		server.MinVersion, server.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		client.MinVersion, client.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}
	c := tls.Server(bufferedConn{p.Conn, p.In}, server)
	if p.side == 'C' {
		c = tls.Client(p.Conn, client)
	}
	err := c.Handshake()
	if how == "" {
		p.Use(c)
		return err
	}
	if p.side == 'S' {
		if err == nil { // in TLS 1.3 the client ends the handshake
			_, err = c.Read(make([]byte, 1))
		}
		p.say(Close)
	}
	if err == nil {
		return errors.New("the handshake has succeeded")
	}
	return nil
}

// bufferedConn is a connection of which a part is read already.
type bufferedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c bufferedConn) Read(p []byte) (int, error) { return c.in.Read(p) }
