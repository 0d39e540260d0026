package model

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/door"
	"spamgate/internal/milter"
	"spamgate/internal/policyservice"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// server is the server of a door, and a connection to it.
type server struct {
	subject interface {
		Apply(door.Settings)
		Serve(net.Listener) error
		Shutdown(context.Context) error
	}
	proofs *proofs
	addr   string
	conn   net.Conn
	in     *bufio.Reader
}

// open serves until the end of the test, and connects.
func (s *server) open(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.subject.Serve(l) }()
	s.dial(t)
	t.Cleanup(func() {
		s.conn.Close()
		must(t, s.subject.Shutdown(context.Background()))
		must(t, <-served)
	})
}

func (s *server) dial(t *testing.T) {
	t.Helper()
	if s.conn != nil {
		s.conn.Close()
	}
	var err error
	s.conn, err = net.Dial("tcp", s.addr)
	must(t, err)
	must(t, s.conn.SetDeadline(time.Now().Add(10*time.Minute)))
	s.in = bufio.NewReader(s.conn)
}

func (s *server) apply(settings smtpfilter.Settings) error {
	s.subject.Apply(door.Settings{Checker: settings.Checker, Policy: settings.Policy, Signatures: settings.Signatures})
	return nil
}

func (s *server) write(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(s.conn, text)
	must(t, err)
}

// doorSettings returns settings until a world is applied.
func doorSettings(t *testing.T, g *gate) door.Settings {
	return door.Settings{Checker: g.settings(t, &world{}).Checker}
}

// milterDoor is a milter, asked as by a mail server.
type milterDoor struct{ server }

func (*milterDoor) String() string { return "milter" }

func newMilter(t *testing.T, g *gate) *milterDoor {
	s := &milterDoor{server{proofs: g.proofs}}
	s.subject = milter.New(door.Config{}, doorSettings(t, g))
	s.open(t)
	// Version 6, fields may be added and recipients deleted, values come with their space.
	offer := binary.BigEndian.AppendUint32(nil, 6)
	offer = binary.BigEndian.AppendUint32(offer, 1<<0|1<<3)
	offer = binary.BigEndian.AppendUint32(offer, 1<<20)
	if kind, _ := s.ask(t, packet(nil, 'O', string(offer))); kind != 'O' {
		t.Fatalf("the negotiation is answered by %q", kind)
	}
	return s
}

// packet appends a packet.
func packet(b []byte, command byte, data string) []byte {
	return append(append(binary.BigEndian.AppendUint32(b, uint32(1+len(data))), command), data...)
}

// ask sends packets and returns the first answer.
func (s *milterDoor) ask(t *testing.T, packets []byte) (kind byte, answer string) {
	t.Helper()
	s.write(t, string(packets))
	return s.answer(t)
}

func (s *milterDoor) answer(t *testing.T) (kind byte, answer string) {
	t.Helper()
	var size uint32
	must(t, binary.Read(s.in, binary.BigEndian, &size))
	data := make([]byte, size)
	_, err := io.ReadFull(s.in, data)
	must(t, err)
	return data[0], strings.TrimSuffix(string(data[1:]), "\x00")
}

func (s *milterDoor) send(t *testing.T, m *message) done {
	t.Helper()
	var d done
	text := m.text()
	s.proofs.about(m, text)
	packets := packet(nil, 'C', "client\x004\x00\x19127.0.0.1\x00")
	packets = packet(packets, 'M', "<"+m.from.written+">\x00")
	for _, r := range m.rcpts {
		packets = packet(packets, 'R', "<"+r+">\x00")
	}
	s.ask(t, packets)
	s.answer(t)
	for _, r := range m.rcpts {
		refusal := ""
		if kind, answer := s.answer(t); kind == 'y' {
			refusal = idPart.ReplaceAllString(strings.ReplaceAll(answer, "%%", "%"), "")
		} else {
			d.taken, d.to = true, append(d.to, r)
		}
		d.rcpts = append(d.rcpts, refusal)
	}
	if !d.taken {
		s.write(t, string(packet(nil, 'A', "")))
		return d
	}
	header, body, _ := strings.Cut(string(text), "\r\n\r\n")
	packets = nil
	for line := range strings.SplitSeq(header, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		packets = packet(packets, 'L', name+"\x00"+value+"\x00")
	}
	packets = packet(packet(packet(packets, 'N', ""), 'B', body), 'E', "")
	kind, answer := s.ask(t, packets)
	for range strings.Count(header, "\r\n") + 3 {
		if kind != 'c' {
			t.Fatalf("a field or the body is answered by %q", kind)
		}
		kind, answer = s.answer(t)
	}
	d.message.code = 250
	for ; kind == 'h' || kind == '-'; kind, answer = s.answer(t) {
		if kind == '-' {
			i := slices.Index(d.to, strings.Trim(answer, "<>"))
			if i < 0 {
				d.faults = append(d.faults, "deletes "+answer)
				continue
			}
			d.to = slices.Delete(d.to, i, i+1)
		} else if tag := tagPart.FindStringSubmatch(strings.Replace(answer, "\x00", ":", 1)); tag != nil {
			d.tags = append(d.tags, tag[1])
		}
	}
	switch kind {
	case 'd':
		d.to = nil
	case 'y':
		d.to = nil
		var r wire.Reply
		_, err := r.AppendLine([]byte(strings.ReplaceAll(answer, "%%", "%") + "\r\n"))
		must(t, err)
		d.message, d.advises = short(r), strings.Contains(answer, othersAlone)
	}
	d.faults = append(d.faults, s.proofs.faults...)
	s.proofs.faults = nil
	return d
}

// policyService is a policy service, asked as by Postfix.
type policyService struct {
	server
	instances int
}

func (*policyService) String() string { return "policy service" }

func newPolicyService(t *testing.T, g *gate) *policyService {
	s := &policyService{server: server{proofs: g.proofs}}
	s.subject = policyservice.New(door.Config{}, doorSettings(t, g))
	s.open(t)
	return s
}

// noAction is written for a question without an answer. Postfix defers then.
const noAction = "451 no answer"

func (s *policyService) send(t *testing.T, m *message) done {
	t.Helper()
	d := done{message: reply{code: 250}}
	s.proofs.about(m, nil)
	s.instances++
	for _, r := range m.rcpts {
		s.write(t, fmt.Sprintf("request=smtpd_access_policy\nprotocol_state=RCPT\ninstance=i%d\nclient_address=127.0.0.1\nsender=%s\nrecipient=%s\n\n",
			s.instances, m.from.written, r))
		action, err := s.in.ReadString('\n')
		if err == nil {
			_, err = s.in.ReadString('\n')
		}
		if errors.Is(err, io.EOF) {
			action = noAction
			s.dial(t)
		} else {
			must(t, err)
		}
		action = strings.Replace(strings.TrimPrefix(strings.TrimSpace(action), "action="), "DEFER_IF_PERMIT", "451", 1)
		if action == "DUNNO" || strings.HasPrefix(action, "PREPEND ") {
			d.taken, d.to, d.tags = true, append(d.to, r), append(d.tags, strings.TrimPrefix(action, "DUNNO"))
			action = ""
		} else {
			d.tags = append(d.tags, "")
		}
		d.rcpts = append(d.rcpts, idPart.ReplaceAllString(action, ""))
	}
	return d
}

// compose says what is not as it must be: each recipient gets the answer that it gets alone,
// except that a message gets each field once. Without an answer the service forgets the message.
func (s *policyService) compose(alone []done, all done) string {
	var has []string
	for i, a := range alone {
		want := a.tags[0]
		switch {
		case slices.Contains(has, want):
			want = ""
		case want != "":
			has = append(has, want)
		case a.rcpts[0] == noAction:
			has = nil
		}
		if all.rcpts[i] != a.rcpts[0] || all.tags[i] != want {
			return fmt.Sprintf("recipient %d: %q %q, want %q %q", i+1, all.rcpts[i], all.tags[i], a.rcpts[0], want)
		}
	}
	return ""
}
