package nexthop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"spamgate/smtpfilter/wire"
)

// stage is the progress of a transaction.
type stage uint8

const (
	stageNew     stage = iota // no connection yet
	stageOpen                 // MAIL was accepted, or a RSET is needed
	stageMessage              // DATA was answered with 354, or chunks are sent
	stageEnding               // the end of the message is being sent, or was
	stageOver                 // the connection was given back or closed
)

// transaction is a Transaction over SMTP.
//
// It owns a connection from the first Rcpt until finish. The end of ctx closes that
// connection, and so interrupts all waits. Once a part of the message's end may have
// been sent, nothing interrupts.
type transaction struct {
	hop   *SMTP
	login *login // whose connection it uses, or nil
	env   Envelope

	ctx    context.Context // nil before the first call
	cancel context.CancelCauseFunc
	guard  func() bool // stops ctx from closing conn; false if it has

	// Used by the goroutine whose call is under way, or with mu held if none
	// is.
	conn       *conn
	content    content // while a message is open: lines or chunks
	lines      lines
	chunks     chunks
	unanswered int // chunks that were sent and not answered yet
	stage      stage
	accepted   int          // recipients
	replies    []wire.Reply // of an LMTP server to the message, for each recipient
	refused    wire.Reply   // of MAIL, or a 421: the reply to all later commands
	err        error        // the result of all later calls

	mu        sync.Mutex
	busy      bool            // a call is under way
	call      context.Context // the context of that call
	watched   context.Context // the context whose end cancels calls
	stopWatch func() bool     // stops watching it
	aborted   bool
}

func newTransaction(s *SMTP, env Envelope) *transaction {
	if env.Logged != nil {
		logged := *env.Logged // its name may be looked up
		env.Logged = &logged
	}
	return &transaction{hop: s, env: env}
}

// enter begins a call, which leave ends. The end of ctx interrupts the call.
func (t *transaction) enter(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return t.err
	}
	if ctx.Err() != nil {
		t.finish(fmt.Errorf("next hop %s: %w", t.hop, context.Cause(ctx)))
		return t.err
	}
	if t.ctx == nil {
		t.ctx, t.cancel = context.WithCancelCause(context.Background())
	}
	t.busy, t.call = true, ctx
	if ctx.Done() != nil && ctx != t.watched {
		t.watch(ctx)
	}
	return nil
}

// leave ends a call.
func (t *transaction) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy, t.call = false, nil
	if t.aborted {
		t.finish(ErrAborted)
	}
}

// watch makes the end of ctx interrupt the calls that have ctx: mostly all of them.
func (t *transaction) watch(ctx context.Context) {
	if t.watched != nil {
		t.stopWatch()
	}
	t.watched = ctx
	t.stopWatch = context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.call == ctx {
			t.cancel(context.Cause(ctx))
		}
	})
}

// Abort ends the transaction.
func (t *transaction) Abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.aborted {
		return
	}
	t.aborted = true
	if t.busy {
		t.cancel(ErrAborted) // ends the call, and leave finishes
		return
	}
	t.finish(ErrAborted)
}

// finish gives the connection back, or closes it if a message was begun: the next
// hop must see no end of that. Later calls return err.
func (t *transaction) finish(err error) {
	t.err = cmp.Or(t.err, err)
	if t.conn != nil {
		switch intact := t.guard(); {
		case intact && t.stage == stageNew:
			t.hop.release(t.conn, false)
		case intact && t.stage == stageOpen:
			t.hop.release(t.conn, true)
		default:
			t.conn.Close()
		}
	}
	t.drop()
}

// stepsOf has the steps of what fail says was being done.
var stepsOf = map[string]Step{"RCPT": StepMail, "DATA": StepData, "message": StepMessage, "end of message": StepMessage}

// fail ends the transaction and returns its error: what was being done, and err or
// the cause of an interruption. The end of a message is never interrupted.
func (t *transaction) fail(doing string, err error) error {
	if t.ctx.Err() != nil && t.stage != stageEnding {
		err = context.Cause(t.ctx)
	} else {
		t.hop.noteFailed(err, stepsOf[doing])
	}
	err = fmt.Errorf("next hop %s: %s: %w", t.hop, doing, err)
	t.err = cmp.Or(t.err, err)
	t.closeConn()
	return err
}

// closeConn closes the connection, if there is one.
func (t *transaction) closeConn() {
	if t.conn != nil {
		t.guard()
		t.conn.Close()
	}
	t.drop()
}

// drop releases all but the connection.
func (t *transaction) drop() {
	t.conn, t.stage = nil, stageOver
	if t.content != nil {
		t.content.free()
		t.content = nil
	}
	if t.watched != nil {
		t.stopWatch()
		t.watched = nil
	}
	if t.ctx != nil {
		t.cancel(nil)
	}
}

// attach makes c the transaction's connection.
func (t *transaction) attach(c *conn) {
	t.conn = c
	if t.login == nil {
		c.setClient(&t.env.Client)
	}
	c.alive = func() error { return t.hop.checkAlive(t.ctx) }
	t.guard = context.AfterFunc(t.ctx, func() { c.Close() })
}

// Rcpt sends RCPT, the first time with MAIL.
func (t *transaction) Rcpt(ctx context.Context, to string, params []string) (wire.Reply, error) {
	if err := t.enter(ctx); err != nil {
		return wire.Reply{}, err
	}
	defer t.leave()
	if !t.refused.IsZero() {
		return t.refused, nil
	}
	rcpt, err := pathCommand("RCPT TO:<", to, params)
	if err != nil {
		return wire.Reply{}, t.fail("RCPT", err)
	}
	var reply wire.Reply
	switch t.stage {
	case stageNew:
		reply, err = t.open(rcpt, to, params)
	case stageOpen:
		if err = checkRcpt(to, params, t.conn.offers); err == nil {
			reply, err = t.conn.ask(rcpt, t.hop.config.Timeouts.Rcpt, 0)
			err = inStep(StepMail, err)
		}
		if err == nil && !reply.Positive() {
			err = t.checkSession(reply)
		}
	default:
		err = errors.New("called after DATA")
	}
	if err != nil {
		return wire.Reply{}, t.fail("RCPT", err)
	}
	if reply.Code == codeClosing {
		t.refused = reply
		t.closeConn()
	}
	if reply.Positive() {
		t.accepted++
	}
	t.hop.refusals.add(1, 1, reply)
	return reply, nil
}

// Data opens the message: with DATA, or without a command if it goes in chunks.
func (t *transaction) Data(ctx context.Context, f Format) (Message, wire.Reply, error) {
	if err := t.enter(ctx); err != nil {
		return nil, wire.Reply{}, err
	}
	defer t.leave()
	if !t.refused.IsZero() {
		return nil, t.refused, nil
	}
	if t.stage != stageOpen || t.accepted == 0 {
		return nil, wire.Reply{}, t.fail("DATA", errors.New("no recipient was accepted, or a second DATA"))
	}
	if f == Binary && !(t.conn.offers.Has("CHUNKING") && t.conn.offers.Has("BINARYMIME")) {
		t.finish(fmt.Errorf("next hop %s: binary message: %w", t.hop, ErrNotOffered))
		return nil, wire.Reply{}, t.err
	}
	if t.conn.offers.Has("CHUNKING") && (f != Stuffed || t.hop.config.Chunks && fitsChunk(t.env.Params)) {
		t.conn.messages++
		t.chunks.open(t, f == Stuffed)
		t.content, t.stage = &t.chunks, stageMessage
		return message{t}, wire.NewReply(codeGoOn, "Go on"), nil
	}
	return t.openData(f)
}

// openData opens the message with DATA.
func (t *transaction) openData(f Format) (Message, wire.Reply, error) {
	reply, err := t.conn.ask("DATA", t.hop.config.Timeouts.Data, codeGoOn)
	if err == nil && reply.Positive() {
		err = unexpected(reply)
	}
	if err == nil && reply.Code != codeGoOn {
		err = t.checkSession(reply)
	}
	if err != nil {
		return nil, wire.Reply{}, t.fail("DATA", inStep(StepData, err))
	}
	if reply.Code != codeGoOn {
		t.countRefused(t.accepted, reply)
		if reply.Code == codeClosing {
			t.refused = reply
			t.closeConn()
		}
		return nil, reply, nil
	}
	t.conn.messages++
	t.lines = lines{conn: t.conn, w: getWriter(t.conn), raw: f == Raw}
	t.content, t.stage = &t.lines, stageMessage
	return message{t}, reply, nil
}

// countRefused counts accepted recipients for whom the next hop refuses the message after all.
func (t *transaction) countRefused(recipients int, reply wire.Reply) {
	if reply.Permanent() {
		t.hop.refusals.add(0, recipients, reply)
	}
}

// codeGoOn is the positive reply to DATA.
const codeGoOn = 354
