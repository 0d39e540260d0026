package milter

import (
	"bytes"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/internal/door"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// maxPaths bounds the recipients of a message in memory, in bytes. A mail server has a limit
// of its own, which is 1000 recipients in Postfix.
const maxPaths = 16 << 20

// pathCost is what a recipient costs beside its path.
const pathCost = 256

// begin begins a message.
func (s *session) begin(data []byte) {
	login, queueID := s.login, s.queueID // its macros came before it
	s.abandon()
	s.message = s.server.door.Begin(s.server.conns.Context(), door.Envelope{
		Client:  s.client,
		Helo:    s.helo,
		Login:   login,
		From:    path(data),
		QueueID: queueID,
	})
	s.section.limit = s.message.HeaderLimit()
}

// path returns the address in the data of MAIL or RCPT, which is as the client has written
// it. An ESMTP argument may follow. What the proxy would refuse is returned with its
// brackets removed: it is no valid sender then.
func path(data []byte) string {
	arg, _, _ := bytes.Cut(data, []byte{0})
	text := string(arg)
	if p, err := wire.ParsePath(text); err == nil {
		return p.String()
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
}

// quoted returns an address in a macro as it stands in an SMTP command. Postfix removes the
// quotes of a local part.
func quoted(address string) string {
	pos := strings.LastIndexByte(address, '@')
	if pos <= 0 || address[0] == '"' {
		return address
	}
	return sender.QuoteLocal(address[:pos]) + address[pos:]
}

// recipient answers a RCPT.
func (s *session) recipient(data []byte) {
	s.setQueueID()
	rcpt, rewritten := path(data), quoted(s.rcpt)
	s.rcpt = "" // it is of this recipient only
	if s.paths += len(rcpt) + pathCost; s.paths > maxPaths {
		s.refuse(wire.NewReply(452, "4.5.3 Too many recipients"))
		return
	}
	if a := s.message.RecipientAs(rcpt, rewritten); !a.Reply.IsZero() {
		s.refuse(a.Reply)
		return
	}
	s.proceed(0)
}

// setQueueID tells the message the queue id, which Postfix has after the first recipient.
func (s *session) setQueueID() {
	if s.queueID != "" {
		s.message.SetQueueID(s.queueID)
	}
}

// header judges the header, once it is complete.
func (s *session) header() {
	if s.headed {
		return
	}
	s.headed = true
	s.setQueueID()
	if s.section.tooLarge {
		return // the end of the message refuses it
	}
	s.message.Header(s.section.text, s.names)
	if s.protocol&noBody == 0 {
		s.content = s.message.Content()
	}
}

// body answers a part of the body.
func (s *session) body(data []byte) {
	s.header()
	if s.content == nil && s.protocol&maySkip != 0 {
		s.out = appendPacket(s.out, ansSkip)
		return
	}
	s.take(data)
	s.proceed(quietBody)
}

// take takes a part of the body, if something depends on it.
func (s *session) take(data []byte) {
	if s.content != nil {
		_, _ = s.content.Write(data) // it never fails
	}
}

// end answers the end of a message, which may have the last part of the body.
func (s *session) end(data []byte) {
	m := s.message
	s.header()
	s.take(data)
	s.setQueueID() // Sendmail tells it with the end of the message at the latest
	a := door.Answer{}
	if s.section.tooLarge {
		a = m.HeaderTooLarge()
	} else {
		a = m.End()
	}
	switch {
	case !a.Reply.IsZero():
		s.refuse(a.Reply)
	case a.Action.Drops():
		s.discard(a)
	default:
		m.Passed(false)
		s.pass(a.Tags)
	}
	s.forget()
}

// discard drops the message, if all its recipients are discarded. Otherwise it deletes those
// who are. If the mail server does not allow that, it tags the message.
func (s *session) discard(a door.Answer) {
	paths, all := s.message.Discarded()
	switch {
	case all:
		s.message.Passed(false)
		s.out = appendPacket(s.out, ansDiscard)
	case s.actions&mayDeleteRcpts != 0:
		s.message.Passed(false)
		for _, p := range paths {
			s.out = appendPacket(s.out, ansDeleteRcpt, "<", p, ">\x00")
		}
		s.pass(a.Tags)
	default:
		s.message.Passed(true)
		s.pass(append([]string{a.DiscardTag}, a.Tags...))
	}
}

// pass lets a message pass, with a field for each tag.
func (s *session) pass(tags []string) {
	if s.actions&mayAddFields != 0 {
		space := ""
		if s.protocol&leadingSpace != 0 {
			space = " "
		}
		for _, tag := range tags {
			s.out = appendPacket(s.out, ansAddField, smtpfilter.TagField, "\x00", space, tag, "\x00")
		}
	}
	s.out = appendPacket(s.out, ansContinue)
}

// refuse refuses a recipient or a message. Sendmail uses the text as a format, so each "%" is
// doubled. Postfix undoes that.
func (s *session) refuse(r wire.Reply) {
	text := strings.ReplaceAll(r.String(), "%", "%%")
	s.out = appendPacket(s.out, ansReply, text, "\x00")
}

// abandon ends the message without a verdict, if there is one.
func (s *session) abandon() {
	if s.message != nil {
		s.message.Abandoned()
	}
	s.forget()
}

// forget forgets all of a message, and its macros.
func (s *session) forget() {
	s.message, s.login, s.queueID, s.rcpt, s.paths = nil, "", "", "", 0
	s.headed, s.content = false, nil
	s.section.reset()
}
