package smtpfilter

import (
	"errors"
	"io"
	"net/netip"

	"github.com/emersion/go-smtp"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// session is go-smtp's Session for one client. go-smtp checks the order of the commands.
// The session reads their content from the wire.Conn, and gives it the replies.
type session struct {
	server *Server
	peer   *peer
	conn   *wire.Conn
	t      *transaction // nil outside a mail transaction
}

// Rcpt judges one recipient, and counts it.
func (s *session) Rcpt(string, *smtp.RcptOptions) error {
	reply, outcome := s.judgeRcpt()
	s.server.cfg.Meter.Recipient(s.peer.listener.name, outcome)
	return s.answer(reply)
}

// judgeRcpt judges one recipient: by the limits and the policy, the sender's verdict, and
// then by the next hop.
func (s *session) judgeRcpt() (wire.Reply, RecipientOutcome) {
	t, cmd := s.t, s.conn.Command()
	rcpt, parsed := cmd.Path, verdict.ParseRecipient(cmd.Path.String())
	policy := t.Policy
	if len(t.accepted)+len(t.discarded) >= policy.maxRecipients() {
		return wire.NewReply(452, "4.5.3 Too many recipients"), RecipientLimited
	}
	if result := t.settings.Limiter.RecipientOf(s.addr(), s.peer.loginID(s.conn)); !result.Allowed() {
		return s.peer.listener.limited(s.conn, result), RecipientLimited
	}
	// The next hop decides where an authenticated client may send mail, since it knows
	// who the client is.
	if !s.conn.Authenticated() && !policy.TakesRecipient(parsed) {
		reply := wire.NewReply(550, "5.7.1 <"+PublicText(rcpt.String())+"> relay access denied; id "+t.id)
		s.log(t, &noFinding, []wire.Path{rcpt}, reply, &verdict.Decision{Event: "relay denied"})
		return reply, RecipientRelayDenied
	}
	r := recipient{path: rcpt, params: cmd.Params, class: t.Recipient(parsed)}
	s.observe(t, r.class)
	switch v := &r.class.AtRCPT().Verdict; {
	case v.Action.Refuses():
		return s.refuseRcpt(t, &r)
	case v.Action.Drops():
		t.discarded = append(t.discarded, r)
		t.Take(parsed, r.class)
		return wire.NewReply(250, "2.1.5 Ok"), RecipientDiscarded
	}
	// A listed sender has its refusal by then, and learns nothing of who exists.
	if !s.conn.Authenticated() && !policy.KnowsRecipient(parsed) {
		reply := wire.NewReply(550, "5.1.1 <"+PublicText(rcpt.String())+"> no such recipient here; id "+t.id)
		s.log(t, &noFinding, []wire.Path{rcpt}, reply, &verdict.Decision{Event: "recipient unknown"})
		return reply, RecipientUnknown
	}
	entries, group, ok := t.recall(rcpt)
	if !ok {
		s.log(t, &r.class.Envelope, []wire.Path{rcpt}, tryLater, &verdict.Decision{Event: "other recipients go first"})
		return tryLater, RecipientPostponed
	}
	r.entries = entries
	reply, outcome := s.askRcpt(t, &r)
	if outcome != RecipientAccepted {
		return reply, outcome
	}
	t.accepted = append(t.accepted, r)
	t.Take(parsed, r.class)
	t.group = group
	return reply, RecipientAccepted
}

// refuseRcpt refuses a recipient because of the reverse-path.
func (s *session) refuseRcpt(t *transaction, r *recipient) (wire.Reply, RecipientOutcome) {
	f := &r.class.Envelope
	reply := t.Policy.Refusal(f, t.id)
	s.logRefusal(t, f, []wire.Path{r.path}, reply, nil)
	if len(t.accepted) == 0 { // else it would delay a connection to the next hop too
		s.tarpit(t, f)
	}
	if noAnswer(f) {
		return reply, RecipientFailed
	}
	return reply, RecipientListed
}

func (s *session) addr() netip.Addr { return s.conn.Client().Addr.Addr() }

// tarpit delays the refusal of a listed sender, if the policy says so and the tarpit is
// not full.
func (s *session) tarpit(t *transaction, f *verdict.Finding) {
	if d := t.Policy.Tarpit; d > 0 && !noAnswer(f) && !within(t.Policy.TarpitExempt, s.addr()) {
		t.settings.Tarpit.Wait(s.server.ctx, d, s.server.drain)
	}
}

// Data receives the message. It does not use go-smtp's reader, since the wire.Conn knows
// where the message ends.
func (s *session) Data(io.Reader) error {
	t := s.t
	reply := s.receive(t)
	s.count(t)
	if t.outcome == OutcomeFailed {
		s.noteCutOff()
	}
	return s.answer(reply)
}

// count counts the outcome of a message once. A message that has failed at a recipient
// counts then, whatever the client sends afterwards.
func (s *session) count(t *transaction) {
	if !t.counted {
		t.counted = true
		s.server.cfg.Meter.Message(s.peer.listener.name, t.outcome)
	}
}

// noteCutOff tells Shutdown that a message was cut off, if the time for it is over.
func (s *session) noteCutOff() {
	if s.server.ctx.Err() != nil {
		s.server.cutOff.Store(true)
	}
}

// Reset ends the transaction, if there is one.
func (s *session) Reset() {
	if s.t == nil {
		return
	}
	s.t.next.Abort()
	s.t = nil
}

// Logout ends the session.
func (s *session) Logout() error {
	if s.t != nil && len(s.t.accepted)+len(s.t.discarded) > 0 {
		s.noteCutOff()
	}
	s.Reset()
	return nil
}

// answer sets the reply to the current command, and tells go-smtp whether the command
// succeeded. After 421 the connection ends (RFC 5321, section 3.8), also if the next hop
// sent it.
func (s *session) answer(reply wire.Reply) error {
	s.conn.SetReply(reply)
	if reply.Code == 421 {
		s.conn.CloseAfterReply()
	}
	if reply.Positive() {
		return nil
	}
	return errRefused
}

// errRefused tells go-smtp that a command failed. The session's reply replaces go-smtp's.
var errRefused = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.NoEnhancedCode, Message: "refused"}

// unavailable returns the reply for a next hop that could not be asked or did not answer
// (RFC 3463: X.4.1, no answer from host, X.4.2, bad connection; RFC 8689: 5.7.30). For an
// authenticated client it is 421, which ends the session: the client's connection to the
// next hop is lost, and only the client can log in again.
func (s *session) unavailable(t *transaction, err error) wire.Reply {
	switch {
	case errors.Is(err, nexthop.ErrLoop): // RFC 3463: X.4.6, routing loop detected
		return wire.NewReply(554, "5.4.6 Mail loop: the mail server behind this gate leads back to the gate; id "+t.id)
	case errors.Is(err, nexthop.ErrRequireTLS):
		return wire.NewReply(550, "5.7.30 REQUIRETLS support required; id "+t.id)
	case errors.Is(err, nexthop.ErrNotOffered):
		return wire.NewReply(451, "4.3.5 The mail server behind this gate no longer offers what EHLO has said, connect again; id "+t.id)
	case s.peer.login != nil:
		return wire.NewReply(421, "4.4.2 The connection to the mail server behind this gate is lost, log in again; id "+t.id)
	}
	return wire.NewReply(451, "4.4.1 The mail server behind this gate is not available, try again later; id "+t.id)
}
