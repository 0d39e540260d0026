package milter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"spamgate/internal/door"
)

// session is the connection of a mail server.
type session struct {
	server *Server
	conn   *door.Conn
	buf    []byte // of readPacket
	out    []byte // answers to the present packet

	negotiated bool
	actions    uint32 // what we may do: mayAddFields …
	protocol   uint32 // what is left out, and what is not answered

	// The client of the mail server.
	client netip.AddrPort // not valid if it is not known
	helo   string
	names  []string // of the mail server

	// The present message. The macros may come before it begins.
	message *door.Message // nil outside of a message
	login   string
	queueID string
	rcpt    string // the next recipient, as the mail server has rewritten it
	section section
	headed  bool      // the header was judged
	content io.Writer // takes the body; nil if nothing depends on it
	paths   int       // the bytes of the recipients
}

// errQuit says that the mail server has ended the connection as it should.
var errQuit = errors.New("quit")

// run answers the packets of a mail server until the end of the connection. The error says
// why that was not in order.
func (s *session) run() error {
	for {
		if err := s.wait(); err != nil {
			return ended(err)
		}
		if err := s.conn.SetReadDeadline(time.Now().Add(packetTimeout)); err != nil {
			return err
		}
		command, data, err := readPacket(s.conn.Reader, &s.buf)
		if err != nil {
			return ended(err)
		}
		s.out = s.out[:0]
		if err := s.answer(command, data); err == errQuit {
			return nil
		} else if err != nil {
			return err
		}
		if len(s.out) > 0 {
			if err := s.write(); err != nil {
				return fmt.Errorf("answering: %w", err)
			}
		} else if s.conn.Reader.Buffered() == 0 {
			acknowledge(s.conn.Conn)
		}
	}
}

// wait waits for the next packet. The end of the server interrupts it between two messages.
func (s *session) wait() error {
	if s.message == nil {
		if cap(s.buf) > keptBuffer {
			s.buf = nil
		}
		timeout := commandTimeout
		if !s.negotiated {
			timeout = negotiateTimeout
		}
		return s.conn.Wait(timeout)
	}
	if err := s.conn.SetReadDeadline(time.Now().Add(commandTimeout)); err != nil {
		return err
	}
	_, err := s.conn.Reader.Peek(1)
	return err
}

// ended returns nil for the end of a connection that needs no explanation.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *session) write() error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.conn.Write(s.out)
	return err
}

// answer answers one packet: it appends the answers to s.out.
func (s *session) answer(command byte, data []byte) error {
	if !s.negotiated && command != cmdNegotiate && command != cmdQuit {
		return violation(fmt.Sprintf("%s before the negotiation", commandName(command)))
	}
	switch command {
	case cmdNegotiate:
		return s.negotiate(data)
	case cmdMacros:
		s.define(data)
	case cmdConnect:
		s.abandon()
		s.client, s.helo = parseClient(data), ""
		s.proceed(quietConnect)
	case cmdHelo:
		s.helo = cut(data)
		s.proceed(quietHelo)
	case cmdMail:
		s.begin(data)
		s.proceed(0)
	case cmdRcpt, cmdHeader, cmdBody, cmdEnd:
		if s.message == nil {
			return violation(fmt.Sprintf("%s without MAIL", commandName(command)))
		}
		return s.inMessage(command, data)
	case cmdData:
		s.proceed(quietData)
	case cmdUnknown:
		s.proceed(quietUnknown)
	case cmdEndHeader:
		s.proceed(quietEndHdr)
	case cmdAbort:
		s.abandon()
	case cmdQuitNC:
		s.abandon()
		s.client, s.helo = netip.AddrPort{}, ""
	case cmdQuit:
		return errQuit
	default:
		return violation(fmt.Sprintf("the unknown command %q", command))
	}
	return nil
}

// inMessage answers a packet that needs a message.
func (s *session) inMessage(command byte, data []byte) error {
	switch command {
	case cmdRcpt:
		s.recipient(data)
	case cmdHeader:
		name, value, ok := bytes.Cut(data, []byte{0})
		if !ok {
			return violation("a header field without a value")
		}
		s.section.add(name, value, s.protocol&leadingSpace != 0)
		s.proceed(quietHeader)
	case cmdBody:
		s.body(data)
	case cmdEnd:
		s.end(data)
	}
	return nil
}

// proceed lets the mail server go on, unless it wants no answer to this command.
func (s *session) proceed(quiet uint32) {
	if s.protocol&quiet == 0 {
		s.out = appendPacket(s.out, ansContinue)
	}
}

// negotiate answers with the parts of the mail server's offer that we use.
func (s *session) negotiate(data []byte) error {
	if len(data) < 12 {
		return violation(fmt.Sprintf("a negotiation of %d bytes", len(data)))
	}
	version := binary.BigEndian.Uint32(data)
	if version < minVersion {
		return violation(fmt.Sprintf("version %d of the protocol: %d to %d are known", version, minVersion, maxVersion))
	}
	s.abandon()
	s.negotiated = true
	s.actions = binary.BigEndian.Uint32(data[4:]) & (mayAddFields | mayDeleteRcpts | mayNameMacros)
	wanted := uint32(noBody | noEndHeader | noUnknown | noData | quietConnect | quietHelo | quietHeader | leadingSpace)
	if s.server.door.ReadsBodies() {
		wanted = wanted&^noBody | maySkip
	}
	s.protocol = binary.BigEndian.Uint32(data[8:]) & wanted
	answer := binary.BigEndian.AppendUint32(nil, min(version, maxVersion))
	answer = binary.BigEndian.AppendUint32(answer, s.actions)
	answer = binary.BigEndian.AppendUint32(answer, s.protocol)
	if s.actions&mayNameMacros != 0 {
		for _, stage := range macroStages {
			answer = binary.BigEndian.AppendUint32(answer, stage.number)
			answer = append(answer, stage.names...)
			answer = append(answer, 0)
		}
	}
	s.out = appendPacket(s.out, cmdNegotiate, string(answer))
	return nil
}

// maxText bounds what is kept of a name from the mail server, in bytes.
const maxText = 1024

// cut returns the text before a NUL byte, maxText bytes of it at most.
func cut(data []byte) string {
	text, _, _ := bytes.Cut(data, []byte{0})
	return string(text[:min(len(text), maxText)])
}

// define takes what it needs of the macros for one command. The login counts only with MAIL,
// which has it for each message: it must not outlive a STARTTLS.
func (s *session) define(data []byte) {
	if len(data) == 0 {
		return
	}
	stage, data := data[0], data[1:]
	switch stage {
	case cmdMail:
		s.login = ""
	case cmdRcpt:
		s.rcpt = ""
	}
	for len(data) > 0 {
		var name, value []byte
		name, data, _ = bytes.Cut(data, []byte{0})
		value, data, _ = bytes.Cut(data, []byte{0})
		switch macro := strings.Trim(string(name), "{}"); {
		case macro == "j":
			s.names = []string{cut(value)}
		case macro == "auth_authen" && stage == cmdMail:
			s.login = cut(value)
		case macro == "rcpt_addr" && stage == cmdRcpt:
			s.rcpt = cut(value)
		case macro == "i" && stage != cmdConnect && stage != cmdHelo:
			s.queueID = cut(value)
		}
	}
}

// parseClient returns the client's address in the data of CONNECT: the name, NUL, the family,
// the port, and the address with NUL. Sendmail writes IPv6 addresses with a prefix. The
// address is not valid if the client is not known or a local process.
func parseClient(data []byte) netip.AddrPort {
	_, rest, _ := bytes.Cut(data, []byte{0})
	if len(rest) < 3 || rest[0] != '4' && rest[0] != '6' {
		return netip.AddrPort{}
	}
	text := cut(rest[3:])
	if len(text) > 5 && strings.EqualFold(text[:5], "IPv6:") {
		text = text[5:]
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(addr.Unmap().WithZone(""), binary.BigEndian.Uint16(rest[1:]))
}

// commandName returns a command as messages name it.
func commandName(command byte) string {
	for _, c := range []struct {
		command byte
		name    string
	}{
		{cmdAbort, "ABORT"}, {cmdBody, "BODY"}, {cmdConnect, "CONNECT"}, {cmdMacros, "MACRO"}, {cmdEnd, "the end of a message"},
		{cmdHelo, "HELO"}, {cmdQuitNC, "QUIT_NC"}, {cmdHeader, "HEADER"}, {cmdMail, "MAIL"}, {cmdEndHeader, "the end of a header"},
		{cmdRcpt, "RCPT"}, {cmdData, "DATA"}, {cmdUnknown, "UNKNOWN"},
	} {
		if c.command == command {
			return c.name
		}
	}
	return fmt.Sprintf("the unknown command %q", command)
}
