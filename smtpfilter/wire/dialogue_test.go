package wire_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// playLimit ends a test that would hang.
const playLimit = 20 * time.Second

// TestDialogues plays every file of testdata/dialogues against a wire.Conn with
// go-smtp's server above it, whose session takes all mail. A file is a set-up, a
// line "---", and a conversation:
//
//	next KEYWORD…             the next hop offers this too, with parameters behind '='; "next -" for nothing
//	limit N, recipients N, errors N
//	tls offered|required|implicit
//	auth                      cfg.Auth is the test's: see authenticate
//	trusted PREFIX, proxy PREFIX
//	delay DURATION, reject    the greeting delay; what comes early is refused
//	refuse ADDRESS REPLY      Config.Connected refuses this client
//	erred N REPLY             Config.Erred says this to the Nth error
//	---
//	C LINE     the client sends a line
//	R TEXT     the client sends bytes: \r \n \xHH, and (TEXT)*N repeats
//	S LINE     the next reply line; '*' stands for any text
//	E LINE,…   the reply to EHLO: the host name and these keywords, in this order
//	TLS        the client shakes hands; "TLS 1.1" with that version at most, and fails
//	V TEXT     the client shakes hands and sends bytes with the last packet of that
//	X          the gate closes the connection
//	A          the same, with an alert of TLS before (RFC 8446, section 6)
//	Q          the client closes the connection
//	L TEXT     what the session or a hook has heard, in order; checked at the end
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogues/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			playDialogue(t, file)
		})
	}
}

type dialogue struct {
	t    *testing.T
	gate *played
	conn net.Conn
	in   *bufio.Reader
	heed bool // the file says what is heard
	want []string
}

func playDialogue(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	setUp, conversation, ok := strings.Cut(string(data), "---\n")
	if !ok {
		t.Fatalf("%s: no line ---", file)
	}
	d := &dialogue{t: t, gate: newPlayed(t)}
	line := 0
	each := func(text string, do func(string) error) {
		for text := range strings.Lines(text) {
			line++
			if text = strings.TrimRight(text, "\n"); text == "" || text[0] == '#' {
				continue
			}
			if err := do(text); err != nil {
				t.Fatalf("%s:%d: %s: %v", file, line, text, err)
			}
		}
	}
	each(setUp, d.gate.setUp)
	line++
	d.gate.start(t)
	d.use(d.gate.dial(t))
	each(conversation, d.step)
	d.conn.Close()
	d.gate.stop(t)
	if got := d.gate.heard(); d.heed && !slices.EqualFunc(d.want, got, like) {
		t.Errorf("%s: heard\n\t%s\nwant\n\t%s", file, strings.Join(got, "\n\t"), strings.Join(d.want, "\n\t"))
	}
}

func (d *dialogue) use(c net.Conn) {
	c.SetDeadline(time.Now().Add(playLimit))
	d.conn, d.in = c, bufio.NewReader(c)
}

// play plays steps that are no file's.
func (d *dialogue) play(steps ...string) {
	d.t.Helper()
	if err := d.try(steps...); err != nil {
		d.t.Error(err)
	}
}

// try is play where a failure need not be the test's.
func (d *dialogue) try(steps ...string) error {
	for _, text := range steps {
		if err := d.step(text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

func (d *dialogue) step(text string) error {
	verb, arg, _ := strings.Cut(text, " ")
	switch verb {
	case "C":
		return d.send(arg + "\r\n")
	case "R":
		return d.send(expand(arg))
	case "S":
		return d.reply(arg)
	case "E":
		keywords := append([]string{"gate.example"}, strings.Split(arg, ",")...)
		for i, keyword := range keywords {
			separator := "-"
			if i == len(keywords)-1 {
				separator = " "
			}
			if err := d.reply("250" + separator + keyword); err != nil {
				return err
			}
		}
		return nil
	case "TLS":
		return d.startTLS(arg)
	case "V":
		return d.startTLSAndSend(expand(arg))
	case "X":
		if b, err := io.ReadAll(d.in); len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("got %q, %v; want the end of the connection", b, err)
		}
		return nil
	case "A":
		b, err := io.ReadAll(d.in)
		if len(b) > 7 || len(b) > 0 && b[0] != 21 || errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("got %q, %v; want an alert of TLS at most", b, err)
		}
		return nil
	case "Q":
		return d.conn.Close()
	case "L":
		d.heed = true
		if arg != "-" {
			d.want = append(d.want, arg)
		}
		return nil
	}
	return errors.New("unknown step")
}

func (d *dialogue) send(s string) error {
	_, err := io.WriteString(d.conn, s)
	return err
}

func (d *dialogue) reply(want string) error {
	line, err := d.in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("got %q, %w", line, err)
	}
	if got, ok := strings.CutSuffix(line, "\r\n"); !ok || !like(want, got) {
		return fmt.Errorf("got %q", line)
	}
	return nil
}

func (d *dialogue) startTLS(version string) error {
	cfg := &tls.Config{InsecureSkipVerify: true}
	if version == "1.1" {
		cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}
	c := tls.Client(d.conn, cfg)
	err := c.Handshake()
	if version == "1.1" {
		if err == nil {
			return errors.New("the handshake has succeeded")
		}
		return nil
	}
	d.use(c)
	return err
}

// startTLSAndSend puts a client's first bytes into the packet that ends its
// handshake.
func (d *dialogue) startTLSAndSend(text string) error {
	late := &lateConn{Conn: d.conn}
	c := tls.Client(late, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	err := c.Handshake()
	if err == nil {
		_, err = io.WriteString(c, text)
	}
	if err == nil {
		_, err = late.Conn.Write(late.held)
	}
	late.open = true
	d.use(c)
	return err
}

// lateConn holds back what is written behind the first message, until it is
// open.
type lateConn struct {
	net.Conn
	hello, open bool
	held        []byte
}

func (l *lateConn) Write(p []byte) (int, error) {
	if l.open || !l.hello {
		l.hello = true
		return l.Conn.Write(p)
	}
	l.held = append(l.held, p...)
	return len(p), nil
}

// like compares text with a pattern in which '*' stands for any text.
func like(pattern, text string) bool {
	first, rest, ok := strings.Cut(pattern, "*")
	if !ok {
		return pattern == text
	}
	text, ok = strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for i := range len(text) + 1 {
		if like(rest, text[i:]) {
			return true
		}
	}
	return false
}

// expand puts bytes for \r, \n and \xHH, and repeats (TEXT)*N.
func expand(s string) string {
	var b bytes.Buffer
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], `\r`):
			b.WriteByte('\r')
			i++
		case strings.HasPrefix(s[i:], `\n`):
			b.WriteByte('\n')
			i++
		case strings.HasPrefix(s[i:], `\x`):
			v, _ := strconv.ParseUint(s[i+2:i+4], 16, 8)
			b.WriteByte(byte(v))
			i += 3
		case strings.HasPrefix(s[i:], `\(`):
			text, rest, _ := strings.Cut(s[i+2:], ")*")
			digits := 0
			for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
				digits++
			}
			n, _ := strconv.Atoi(rest[:digits])
			b.WriteString(strings.Repeat(text, n))
			i = len(s) - len(rest) + digits - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
