package smtpfilter

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/emersion/go-smtp"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/partial"
	"spamgate/smtpfilter/wire"
)

// session is go-smtp's Session for one client. go-smtp keeps the order of the
// commands; their content and the replies are exchanged with the wire.Conn.
type session struct {
	server *Server
	peer   *peer
	conn   *wire.Conn
	t      *transaction // nil outside a mail transaction
}

// transaction is what is known of one message.
type transaction struct {
	id       string
	began    time.Time
	settings *Settings
	client   nexthop.Client
	from     wire.Path
	params   []string
	utf8     bool
	exempt   string          // why the client is exempt from the lists: "client", "authenticated"
	judge    verdict.Judge   // nil where it is
	message  verdict.Message // its facts, for the judge
	envelope verdict.Finding
	findings []verdict.Finding // of the header

	next      nexthop.Transaction // begun with MAIL, asked at the first recipient
	accepted  []recipient         // taken by the next hop
	discarded []wire.Path         // taken by us, to be dropped
	deferred  []wire.Path         // refused for now by the next hop
	together  partial.Group       // of the accepted ones
	digest    *partial.Digest     // of the message; nil without a Memory
	messageID string

	outcome Outcome // of what was decided last
	counted bool    // by the Meter
}

type recipient struct {
	path   wire.Path
	params []string
	exempt bool

	known []partial.Entry // what the Memory has of it
	late  wire.Reply      // the next hop's refusal, where it may have the message already
}

// Mail begins a transaction. The next hop hears of it with the first recipient.
func (s *session) Mail(string, *smtp.MailOptions) error {
	if s.conn.Messages() == 0 {
		growStack(0)
	}
	cmd := s.conn.Command()
	if s.t != nil {
		return s.answer(wire.NewReply(503, "5.5.1 A mail transaction is open already; end it with DATA or RSET"))
	}
	if limit := s.conn.MaxMessageBytes(); limit > 0 && cmd.Size > limit {
		reply := tooLarge(limit)
		s.peer.listener.logBadCommand(s.conn, fmt.Sprintf("MAIL FROM:<%s> SIZE=%d", cmd.Path, cmd.Size), reply)
		return s.answer(reply)
	}
	if s.comesBack() {
		return s.answer(s.refuseLoop())
	}
	settings := s.peer.listener.settings.Load()
	if hit := settings.Limiter.Message(s.addr()); !hit.Allowed() {
		return s.answer(s.peer.listener.limited(s.conn, hit))
	}
	t := &transaction{
		id:       newID(),
		began:    time.Now(),
		settings: settings,
		client:   s.peer.client(s.conn),
		from:     cmd.Path,
		params:   cmd.Params,
		utf8:     cmd.UTF8,
		envelope: verdict.Finding{Identity: verdict.EnvelopeIdentity, Address: cmd.Path.String()},
	}
	if !s.conn.Authenticated() && t.client.Login == "" {
		t.params = withoutSubmitter(t.params)
	}
	t.next = s.begin(t)
	policy := &t.settings.Policy
	switch {
	case policy.ExemptClient(s.addr()):
		t.exempt = "client"
	case policy.ExemptAuthenticated && (s.conn.Authenticated() || t.client.Login != ""):
		t.exempt = "authenticated"
	default:
		t.judge = t.settings.Checker.Judge()
		t.message = verdict.Message{
			Door:        "proxy",
			Listener:    s.peer.listener.name,
			Client:      t.client.Addr,
			Helo:        t.client.Helo,
			Login:       t.client.Login,
			ReversePath: cmd.Path.String(),
		}
		t.envelope = policy.JudgeEnvelope(s.server.ctx, t.judge, &t.message)
	}
	if t.envelope.Err != nil && !t.envelope.NoAnswer() {
		// Nothing can be looked up for what is no address, so it can't be let
		// through. Where the lists are to blame, each recipient hears so.
		t.next.Abort()
		reply := wire.NewReply(553, "5.1.7 Sender address not understood")
		s.logRefusal(t, t.envelope, nil, verdict.Reject, reply)
		return s.answer(reply)
	}
	s.t = t
	s.logMonitored(t, []verdict.Finding{t.envelope})
	return nil
}

// Rcpt judges one recipient: by the sender's verdict, then by the next hop.
func (s *session) Rcpt(string, *smtp.RcptOptions) error {
	t, cmd := s.t, s.conn.Command()
	rcpt, parsed := cmd.Path, verdict.ParseRecipient(cmd.Path.String())
	policy := &t.settings.Policy
	if len(t.accepted)+len(t.discarded) >= policy.maxRecipients() {
		return s.answer(wire.NewReply(452, "4.5.3 Too many recipients"))
	}
	if hit := t.settings.Limiter.Recipient(s.addr()); !hit.Allowed() {
		return s.answer(s.peer.listener.limited(s.conn, hit))
	}
	// Whether an authenticated client may send anywhere is for the next hop to
	// say, which knows who it is.
	if !s.conn.Authenticated() && !policy.TakesRecipient(parsed) {
		reply := wire.NewReply(550, "5.7.1 <"+PublicText(rcpt.String())+"> relay access denied; id "+t.id)
		s.logRelayDenied(t, rcpt, reply)
		return s.answer(reply)
	}
	exempt := policy.ExemptRecipient(parsed)
	if !exempt {
		switch action := t.envelope.Verdict.Action; action {
		case verdict.Reject, verdict.Defer:
			reply := policy.refusal(action, t.envelope, t.id)
			s.logRefusal(t, t.envelope, []wire.Path{rcpt}, action, reply)
			if len(t.accepted) == 0 { // else a connection to the next hop would wait, too
				s.tarpit(t, t.envelope)
			}
			return s.answer(reply)
		case verdict.Discard:
			t.discarded = append(t.discarded, rcpt)
			t.message.Recipients = append(t.message.Recipients, parsed)
			return s.answer(wire.NewReply(250, "2.1.5 Ok"))
		}
	}
	known, together, ok := t.recall(rcpt)
	if !ok {
		s.logWait(t, rcpt, notNow)
		return s.answer(notNow)
	}
	taken := recipient{path: rcpt, params: cmd.Params, exempt: exempt, known: known}
	reply, err := s.askRcpt(t, taken)
	if err != nil {
		reply = s.unavailable(t, err)
	}
	switch {
	case reply.Positive():
	case partial.HasAny(known):
		// If it has the message that comes, the next hop has no say any more.
		taken.late, reply = reply, wire.NewReply(250, "2.1.5 Ok")
	case err != nil:
		s.logNextHopFailure(t, []wire.Path{rcpt}, reply, err)
		s.count(t)
		return s.answer(reply)
	default:
		if reply.Temporary() {
			t.deferred = append(t.deferred, rcpt)
		}
		s.logNextHopRefusal(t, rcpt, reply)
		return s.answer(reply)
	}
	t.accepted = append(t.accepted, taken)
	t.message.Recipients = append(t.message.Recipients, parsed)
	t.together = together
	return s.answer(reply)
}

// begin opens a transaction with the next hop, which is not asked yet. It is the
// target of the settings that MAIL found, and stays so when they change.
func (s *session) begin(t *transaction) nexthop.Transaction {
	e := nexthop.Envelope{
		Client: t.client,
		From:   t.from.String(),
		Params: t.params,
		ID:     t.id,
	}
	if forwarded := s.conn.Forwarded(); forwarded != s.conn.Client() {
		logged := nextHopClient(forwarded)
		e.Logged = &logged
	}
	if s.peer.login != nil {
		return s.peer.login.Begin(e)
	}
	return t.settings.NextHop.Begin(e)
}

// addr is the client's address.
func (s *session) addr() netip.Addr { return s.conn.Client().Addr.Addr() }

// tarpit holds the refusal of a listed sender back, where the policy says so and
// there is room.
func (s *session) tarpit(t *transaction, f verdict.Finding) {
	if d := t.settings.Policy.Tarpit; d > 0 && !f.NoAnswer() && !within(t.settings.Policy.TarpitExempt, s.addr()) {
		t.settings.Tarpit.Wait(s.server.ctx, d, s.server.drain)
	}
}

// Data takes the message. go-smtp's reader is not used: the wire.Conn knows
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

// noteCutOff tells Shutdown that a message was cut off, if its time is over.
func (s *session) noteCutOff() {
	if s.server.ctx.Err() != nil {
		s.server.cutOff.Store(true)
	}
}

// count tells the Meter what became of a message, once: a message that has failed at a
// recipient is lost to the client, whatever it sends after that.
func (s *session) count(t *transaction) {
	if !t.counted {
		t.counted = true
		s.server.cfg.Meter.Message(s.peer.listener.name, t.outcome)
	}
}

// Reset ends the transaction, if any.
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

// answer makes reply the answer to the current command, and tells go-smtp's
// state machine whether the command has succeeded. Behind 421 the connection
// ends (RFC 5321, section 3.8), whoever said it.
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

// errRefused tells go-smtp that a command has failed. What it makes of it is
// exchanged for the session's reply.
var errRefused = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.NoEnhancedCode, Message: "refused"}

// unavailable is the reply when the next hop could not be asked, or did not
// answer (RFC 3463: X.4.1, no answer from host, X.4.2, bad connection; RFC 8689:
// 5.7.30). An authenticated client hears 421, which ends its session: its
// connection to the next hop is gone, and it alone can log in again.
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

// tooLarge is the reply to a message over the limit (RFC 1870, section 6).
func tooLarge(limit int64) wire.Reply {
	return wire.NewReply(552, fmt.Sprintf("5.3.4 Message larger than %d bytes", limit))
}

// newID names a transaction in replies, trace fields and the log: 60 random
// bits.
func newID() string { return rand.Text()[:12] }
