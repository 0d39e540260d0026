package milter

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"spamgate/internal/door"
)

// byteConn is a connection whose other side has sent all that it sends.
type byteConn struct {
	net.Conn // nil
	in       io.Reader
	out      bytes.Buffer
}

func (c *byteConn) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *byteConn) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *byteConn) SetReadDeadline(time.Time) error  { return nil }
func (c *byteConn) SetWriteDeadline(time.Time) error { return nil }
func (c *byteConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// answersTo returns the answers of a new Server to bytes, and its counts.
func answersTo(t testing.TB, in io.Reader) (answers []string, counted string) {
	t.Helper()
	m := new(meter)
	s := New(door.Config{Name: "beside", Meter: m}, settings(t))
	c := &byteConn{in: in}
	s.handle(&door.Conn{Conn: c, Reader: bufio.NewReader(c)})
	for out := c.out.Bytes(); len(out) > 0; {
		if len(out) < 5 || uint32(len(out)-4) < binary.BigEndian.Uint32(out) {
			t.Fatalf("half an answer: %q", out)
		}
		size := binary.BigEndian.Uint32(out)
		answers = append(answers, decode(out[4:4+size]))
		out = out[4+size:]
	}
	return answers, m.String()
}

// sent returns all that a dialogue sends.
func (d dialogue) sent(t testing.TB) []byte {
	t.Helper()
	var all []byte
	for _, step := range d.steps {
		if text, ok := strings.CutPrefix(step, "> "); ok {
			all = append(all, encode(t, text)...)
		}
	}
	return all
}

// TestCutOff ends the connection after each byte of each dialogue. What was complete is
// answered as ever, and the message that was open is abandoned.
func TestCutOff(t *testing.T) {
	for _, d := range dialogues(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			sent := d.sent(t)
			whole, _ := answersTo(t, bytes.NewReader(sent))
			for n := range sent {
				answers, counted := answersTo(t, bytes.NewReader(sent[:n]))
				if len(answers) > len(whole) || strings.Join(answers, "\n") != strings.Join(whole[:len(answers)], "\n") {
					t.Fatalf("after %d bytes: %q, want the beginning of %q", n, answers, whole)
				}
				if open, want := opened(sent[:n]), strings.Count(" "+counted, " abandoned"); want > open {
					t.Fatalf("after %d bytes: counted %q, and only %d MAIL", n, counted, open)
				}
			}
		})
	}
}

// opened returns the number of complete MAIL packets.
func opened(sent []byte) int {
	n := 0
	for len(sent) > 4 {
		size := int(binary.BigEndian.Uint32(sent))
		if size == 0 || size > len(sent)-4 {
			break
		}
		if sent[4] == cmdMail {
			n++
		}
		sent = sent[4+size:]
	}
	return n
}

// TestByteByByte: where the network cuts the bytes makes no difference.
func TestByteByByte(t *testing.T) {
	for _, d := range dialogues(t) {
		checkReads(t, d.sent(t))
	}
}

// checkReads checks that the answers to bytes do not depend on how they arrive.
func checkReads(t testing.TB, sent []byte) {
	t.Helper()
	whole, counted := answersTo(t, bytes.NewReader(sent))
	single, again := answersTo(t, iotest.OneByteReader(bytes.NewReader(sent)))
	if strings.Join(whole, "\n") != strings.Join(single, "\n") || counted != again {
		t.Fatalf("%q (%s), but %q (%s) byte by byte", whole, counted, single, again)
	}
}

// FuzzBytes sends any bytes. The answers are whole packets, do not depend on how the bytes
// arrive, and no message is counted twice.
func FuzzBytes(f *testing.F) {
	for _, d := range dialogues(f) {
		f.Add(d.sent(f))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		checkReads(t, sent)
		_, counted := answersTo(t, bytes.NewReader(sent))
		messages := 0
		for _, c := range strings.Fields(counted) {
			if !strings.HasPrefix(c, "to:") {
				messages++
			}
		}
		if n := opened(sent); messages > n {
			t.Fatalf("%d messages of %d MAIL: %s", messages, n, counted)
		}
	})
}
