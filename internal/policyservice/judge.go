package policyservice

import (
	"crypto/sha256"
	"time"

	"spamgate/internal/door"
)

// answer returns the answer to a question, and false for none.
func (s *Server) answer(q *request) (action string, ok bool) {
	switch string(q.state) {
	case "RCPT", "DATA", "BDAT", "":
		return s.judge(q, false)
	case "END-OF-MESSAGE":
		return s.judge(q, true)
	case "CONNECT", "HELO", "EHLO", "MAIL":
		s.noRecipient(q)
	}
	return dunno, true // the others, VRFY and ETRN, are not about a message
}

// judge answers a question about a message.
func (s *Server) judge(q *request, afterEnd bool) (action string, ok bool) {
	if len(q.instance) == 0 {
		q.about = &message{}
		return s.judgeMessage(q, afterEnd)
	}
	q.key = q.appendKey(q.key[:0])
	q.about = s.messages.get(q.key, time.Now())
	if action, ok = s.judgeMessage(q, afterEnd); !ok {
		s.messages.forget(q.key, q.about)
	}
	return action, ok
}

// judgeMessage answers a question about a message that is known or new.
func (s *Server) judgeMessage(q *request, afterEnd bool) (action string, ok bool) {
	m := q.about
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Message == nil {
		m.Message = s.door.Begin(s.server.Context(), door.Envelope{
			Client:  client(q.client, q.clientPort),
			Helo:    short(q.helo),
			Login:   short(q.login),
			From:    path(q.sender),
			QueueID: short(q.queueID),
		})
	}
	if len(q.recipient) > 0 {
		return m.recipient(q.recipient, afterEnd)
	}
	if len(m.seen) == 0 {
		s.noRecipient(q)
	}
	return m.anyRecipient(afterEnd), true
}

// noRecipient logs once for each state that Postfix asks without a recipient there, so that
// nobody is refused.
func (s *Server) noRecipient(q *request) {
	if _, warned := s.warned.LoadOrStore(string(q.state), true); !warned {
		s.log.Warn("policy question without a recipient, so it gets no refusal", "state", string(q.state),
			"hint", "put check_policy_service into smtpd_recipient_restrictions, and leave smtpd_delay_reject = yes")
	}
}

// maxText bounds what is remembered of a value that only the log has, in bytes.
const maxText = 1024

// short returns a value, maxText bytes of it at most.
func short(value []byte) string { return string(value[:min(len(value), maxText)]) }

// appendKey appends a sum of what tells messages apart. The instance is enough for those of one
// Postfix; another one's, or a client's that pretends to be Postfix, may be the same.
func (q *request) appendKey(b []byte) []byte {
	for _, value := range [...][]byte{q.instance, q.sender, q.client, q.clientPort, q.helo, q.login} {
		b = append(b, value...)
		b = append(b, '\n')
	}
	sum := sha256.Sum256(b)
	return append(b[:0], sum[:]...)
}
