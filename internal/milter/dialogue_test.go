package milter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A dialogue in testdata/dialogues is what a mail server sends and receives, a packet a line:
//
//	# a comment
//	> M <a@b.example>|SIZE=1|   a packet: the command, and data with "|" for NUL
//	> O 6 1ff 1fffff            a negotiation: version, actions, protocol (hexadecimal)
//	> C name 4 25 192.0.2.1     a client: name, family, port, address
//	> raw 0000                  bytes
//	< c                         a packet in the answer; "ID" is the id of any message
//	< end                       the server closes the connection
//	log: text                   the log has it at the end; "not:" in front: it has not
//	counted: a b c              the Meter's counts, in order
type dialogue struct {
	name    string
	steps   []string
	log     []string
	counted string
}

func dialogues(t testing.TB) []dialogue {
	t.Helper()
	files, err := filepath.Glob("testdata/dialogues/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no dialogues", err)
	}
	var all []dialogue
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := dialogue{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			rest, isLog := strings.CutPrefix(line, "log: ")
			counted, isCount := strings.CutPrefix(line, "counted: ")
			switch {
			case isLog:
				d.log = append(d.log, rest)
			case isCount:
				d.counted = counted
			case line != "" && !strings.HasPrefix(line, "#"):
				d.steps = append(d.steps, line)
			}
		}
		all = append(all, d)
	}
	return all
}

// encode returns the bytes of a step that sends.
func encode(t testing.TB, step string) []byte {
	t.Helper()
	if digits, ok := strings.CutPrefix(step, "raw "); ok {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		return raw
	}
	command, text := step[0], strings.TrimPrefix(step[1:], " ")
	args := strings.Fields(text)
	switch {
	case command == cmdNegotiate && len(args) == 3:
		return appendPacket(nil, command, number(t, args[0], 10), number(t, args[1], 16), number(t, args[2], 16))
	case command == cmdConnect && len(args) == 4:
		port, err := strconv.ParseUint(args[2], 10, 16)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		return appendPacket(nil, command, args[0], "\x00", args[1], string(binary.BigEndian.AppendUint16(nil, uint16(port))), args[3], "\x00")
	}
	return appendPacket(nil, command, strings.NewReplacer("|", "\x00", `\n`, "\n", `\r`, "\r").Replace(text))
}

func number(t testing.TB, text string, base int) string {
	t.Helper()
	n, err := strconv.ParseUint(text, base, 32)
	if err != nil {
		t.Fatal(err)
	}
	return string(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

var someID = regexp.MustCompile(`\b[A-Z2-7]{12}\b`)

// decode returns a packet as a dialogue has it.
func decode(packet []byte) string {
	command, data := packet[0], packet[1:]
	if command == cmdNegotiate && len(data) >= 12 {
		text := fmt.Sprintf("O %d %x %x", binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:]))
		for data = data[12:]; len(data) > 4; {
			names, rest, _ := bytes.Cut(data[4:], []byte{0})
			text += fmt.Sprintf(" %d:%s", data[3], names)
			data = rest
		}
		return text
	}
	text := string(command)
	if len(data) > 0 {
		text += " " + strings.ReplaceAll(string(data), "\x00", "|")
	}
	return someID.ReplaceAllString(text, "ID")
}

// receive returns the next packet, or "end".
func receive(t testing.TB, c net.Conn) string {
	t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("no answer")
		}
		return "end"
	}
	packet := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, packet); err != nil {
		t.Fatal(err)
	}
	return decode(packet)
}

// play plays the steps of a dialogue.
func play(t testing.TB, c net.Conn, steps []string) {
	t.Helper()
	for _, step := range steps {
		switch {
		case strings.HasPrefix(step, "> "):
			if _, err := c.Write(encode(t, step[2:])); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		case strings.HasPrefix(step, "< "):
			if got, want := receive(t, c), step[2:]; got != want {
				t.Fatalf("received\n%s\nwant\n%s", got, want)
			}
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
}

func TestDialogues(t *testing.T) {
	for _, d := range dialogues(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			g := newTestServer(t)
			c := g.dial(t)
			play(t, c, d.steps)
			c.Close()
			g.stop(t)
			log := someID.ReplaceAllString(g.log.String(), "ID")
			for _, part := range d.log {
				text, not := strings.CutPrefix(part, "not: ")
				if strings.Contains(log, text) == not {
					t.Errorf("the log, wanted %q:\n%s", part, log)
				}
			}
			if got := g.meter.String(); got != d.counted {
				t.Errorf("counted %q, want %q", got, d.counted)
			}
		})
	}
}

// deadline is how long a test waits for an answer that does not come.
const deadline = 30 * time.Second
