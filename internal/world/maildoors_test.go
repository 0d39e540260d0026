package world

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"

	maildoor "spamgate/internal/door"
	"spamgate/internal/milter"
	"spamgate/internal/policyservice"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// server is the server of a door, and a connection to it.
type server struct {
	*mailGate
	subject interface {
		Apply(maildoor.Settings)
		Serve(net.Listener) error
		Shutdown(context.Context) error
	}
	clients memoryListener
	conn    *memoryConn
	said    string // by the door, and not yet read
	faults  []string
}

// serve serves until the gate closes.
func (s *server) serve() {
	s.clients = make(memoryListener)
	s.mailGate.serve(func() error { return s.subject.Serve(s.clients) }, s.subject.Shutdown)
}

func (s *server) open() { s.conn, s.said = s.clients.dial() }

func (s *server) close() []string {
	if s.said += s.conn.hangUp(); s.said != "" {
		s.fault("says %q, and nobody has asked", s.said)
	}
	return s.seen()
}

// seen returns what was seen since the last call that must not be.
func (s *server) seen() []string {
	faults := append(s.faults, s.proofs.faults...)
	s.faults, s.proofs.faults = nil, nil
	return faults
}

func (s *server) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *server) apply(settings smtpfilter.Settings) { s.subject.Apply(doorSettings(settings)) }

func doorSettings(s smtpfilter.Settings) maildoor.Settings {
	return maildoor.Settings{Checker: s.Checker, Policy: s.Policy, Signatures: s.Signatures}
}

// say sends something. What the door says is kept.
func (s *server) say(text string) { s.said += s.conn.say(text) }

// milterDoor is a milter, asked as by a mail server.
type milterDoor struct{ server }

func (*milterDoor) String() string { return "milter" }

func newMilter(g *mailGate, first prepared) *milterDoor {
	s := &milterDoor{server{mailGate: g, subject: milter.New(maildoor.Config{}, doorSettings(first.settings))}}
	s.serve()
	return s
}

// open connects, and negotiates: version 6, fields may be added and recipients deleted, values come
// with their space.
func (s *milterDoor) open() {
	s.server.open()
	offer := binary.BigEndian.AppendUint32(nil, 6)
	offer = binary.BigEndian.AppendUint32(offer, 1<<0|1<<3)
	offer = binary.BigEndian.AppendUint32(offer, 1<<20)
	s.say(packet('O', string(offer)))
	if kind, _ := s.answer(); kind != 'O' {
		s.fault("the negotiation is answered by %q", kind)
	}
	s.say(packet('C', "client\x004\x00\x19127.0.0.1\x00"))
	s.goesOn()
}

// packet returns a packet.
func packet(command byte, data string) string {
	return string(append(binary.BigEndian.AppendUint32(nil, uint32(1+len(data))), command)) + data
}

// answer returns the next answer. Kind 0 says that there is none.
func (s *milterDoor) answer() (kind byte, answer string) {
	if len(s.said) < 5 || len(s.said) < 4+int(binary.BigEndian.Uint32([]byte(s.said))) {
		return 0, ""
	}
	end := 4 + binary.BigEndian.Uint32([]byte(s.said))
	kind, answer = s.said[4], strings.TrimSuffix(s.said[5:end], "\x00")
	s.said = s.said[end:]
	if kind == 'y' {
		answer = strings.ReplaceAll(answer, "%%", "%")
		if !wellFormed(answer + "\r\n") {
			s.fault("%q is not well-formed", answer)
		}
	}
	return kind, answer
}

func (s *milterDoor) goesOn() {
	if kind, answer := s.answer(); kind != 'c' {
		s.fault("a packet is answered by %q %q", kind, answer)
	}
}

// edit gives the gate the configurations that it gets after so many recipients.
func (s *milterDoor) edit(h *handling, after int) {
	for _, e := range h.edits {
		if e.after == after {
			s.mailGate.apply(s, e.another)
		}
	}
}

// fields returns the packets of a header.
func fields(header string) (packets []string) {
	for line := range strings.SplitSeq(header, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		packets = append(packets, packet('L', name+"\x00"+value+"\x00"))
	}
	return append(packets, packet('N', ""))
}

func (s *milterDoor) send(m *message, h *handling) (d done) {
	text := m.text()
	s.proofs.about(m, text)
	header, body, _ := strings.Cut(string(text), "\r\n\r\n")
	s.giveUp(m, h, header, body)
	s.say(packet('M', "<"+m.from.written+">\x00"))
	s.goesOn()
	s.edit(h, 0)
	for i, r := range m.rcpts {
		s.say(packet('R', "<"+r+">\x00"))
		refusal := ""
		if kind, answer := s.answer(); kind == 'y' {
			refusal = withoutID(answer)
		} else {
			d.taken, d.to = true, append(d.to, r)
		}
		d.rcpts = append(d.rcpts, refusal)
		s.edit(h, i+1)
	}
	if d.taken {
		for _, p := range fields(header) {
			s.say(p)
			s.goesOn()
		}
		s.edit(h, inContent)
		s.say(packet('B', body))
		s.goesOn()
		s.say(packet('E', ""))
		s.end(&d)
	} else {
		s.say(packet('A', ""))
		s.edit(h, inContent)
	}
	if s.said != "" {
		s.fault("says %q besides", s.said)
	}
	d.faults = s.seen()
	return d
}

// end reads the answers to the end of a message.
func (s *milterDoor) end(d *done) {
	d.message.code = 250
	for {
		switch kind, answer := s.answer(); kind {
		case '-':
			i := slices.Index(d.to, strings.Trim(answer, "<>"))
			if i < 0 {
				s.fault("deletes %s", answer)
				continue
			}
			d.to = slices.Delete(d.to, i, i+1)
		case 'h':
			if tag := tagPart.FindStringSubmatch(strings.Replace(answer, "\x00", ":", 1)); tag != nil {
				d.tags = append(d.tags, tag[1])
			}
		case 'c':
			return
		case 'd':
			d.to = nil
			return
		case 'y':
			d.to = nil
			var r wire.Reply
			must(r.AppendLine([]byte(answer + "\r\n")))
			d.message, d.advises = short(r), strings.Contains(answer, othersAlone)
			return
		default:
			s.fault("the end is answered by %q", kind)
			return
		}
	}
}

// giveUp begins a message that the client gives up.
func (s *milterDoor) giveUp(m *message, h *handling, header, body string) {
	if h.giveUp.how == "" {
		return
	}
	packets := []string{packet('M', "<"+m.from.written+">\x00")}
	for _, r := range m.rcpts {
		packets = append(packets, packet('R', "<"+r+">\x00"))
	}
	switch h.giveUp.how {
	case cutOff:
		all := strings.Join(append(append(packets, fields(header)...), packet('B', body), packet('E', "")), "")
		s.say(all[:len(all)*h.giveUp.after/1000])
		s.conn.hangUp()
		s.open()
	case unended:
		s.say(strings.Join(append(append(packets, fields(header)...), packet('B', body)), ""))
		s.abort()
	default:
		s.say(strings.Join(packets[:1+min(h.giveUp.after, len(m.rcpts))], ""))
		s.abort()
	}
}

// abort ends a message, whatever was said of it.
func (s *milterDoor) abort() {
	s.say(packet('A', ""))
	s.said = ""
}

// policyService is a policy service, asked as by Postfix.
type policyService struct {
	server
	instances int
}

func (*policyService) String() string { return "policy service" }

func newPolicyService(g *mailGate, first prepared) *policyService {
	s := &policyService{server: server{mailGate: g, subject: policyservice.New(maildoor.Config{}, doorSettings(first.settings))}}
	s.serve()
	return s
}

// noAction is written for a question without an answer. Postfix defers then.
const noAction = "451 no answer"

// send asks about a message. A configuration that comes meanwhile comes after it: this door has new
// lists for each recipient, see maildoor.Config.
func (s *policyService) send(m *message, h *handling) done {
	d := done{message: reply{code: 250}}
	s.proofs.about(m, nil)
	s.instances++
	for _, r := range m.rcpts {
		s.say(fmt.Sprintf("request=smtpd_access_policy\nprotocol_state=RCPT\ninstance=i%d\nclient_address=127.0.0.1\nsender=%s\nrecipient=%s\n\n",
			s.instances, m.from.written, r))
		action := noAction
		if s.conn.isClosed() && s.said == "" {
			s.open()
		} else {
			text, begins := strings.CutPrefix(s.said, "action=")
			line, ends := strings.CutSuffix(text, "\n\n")
			if s.said = ""; !begins || !ends || strings.Contains(line, "\n") {
				s.fault("the answer is %q", text)
			}
			action = strings.Replace(line, "DEFER_IF_PERMIT", "451", 1)
		}
		if action == "DUNNO" || strings.HasPrefix(action, "PREPEND ") {
			d.taken, d.to, d.tags = true, append(d.to, r), append(d.tags, strings.TrimPrefix(action, "DUNNO"))
			action = ""
		} else {
			d.tags = append(d.tags, "")
			if action != noAction && !wellFormed(action+"\r\n") {
				s.fault("%q is not well-formed", action)
			}
		}
		d.rcpts = append(d.rcpts, withoutID(action))
	}
	for _, e := range h.edits {
		s.mailGate.apply(s, e.another)
	}
	d.faults = s.seen()
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
