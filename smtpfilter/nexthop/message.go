package nexthop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"spamgate/smtpfilter/wire"
)

// bodyBuffer is the size of the writes into which small pieces are gathered.
const bodyBuffer = 64 << 10

// largePiece is the size from which a piece is written as it is.
const largePiece = 16 << 10

// earlyReplyWait is how long to wait for a reply that should have arrived.
const earlyReplyWait = time.Second

// finalDot ends a message whose last line is complete.
const finalDot = ".\r\n"

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bodyBuffer) }}

func getWriter(w io.Writer) *bufio.Writer {
	b := writers.Get().(*bufio.Writer)
	b.Reset(w)
	return b
}

// content sends a message to the next hop: after DATA, or in chunks. Errors may be a
// chunkError.
type content interface {
	write(p []byte) error
	flush() error

	// prepareEnd makes the end ready to be sent, and reads all outstanding
	// replies.
	prepareEnd() error

	// end sends the end, in one write with what was kept back. It returns whether
	// the kernel took any byte of that.
	end() (sent bool, err error)

	// free releases the buffers.
	free()
}

// lines is the content after DATA.
type lines struct {
	conn    *conn
	w       *bufio.Writer
	raw     bool // the caller writes without dot-stuffing
	stuffer stuffer
}

// write buffers p for a larger write, or sends it. It does not copy a large p.
func (l *lines) write(p []byte) error {
	if l.raw {
		return l.stuffer.write(l.w, p)
	}
	if len(p) < largePiece {
		_, err := l.w.Write(p)
		return err
	}
	if err := l.w.Flush(); err != nil {
		return err
	}
	_, err := l.conn.Write(p)
	return err
}

func (l *lines) flush() error { return l.w.Flush() }

// prepareEnd makes room for the final dot.
func (l *lines) prepareEnd() error {
	if l.raw {
		if err := l.stuffer.close(l.w); err != nil {
			return err
		}
	}
	if l.w.Available() < len(finalDot) {
		return l.w.Flush()
	}
	return nil
}

func (l *lines) end() (sent bool, err error) {
	l.w.WriteString(finalDot) // prepareEnd has made room
	err = l.w.Flush()
	return l.w.Buffered() < len(finalDot), err
}

func (l *lines) free() {
	l.w.Reset(nil)
	writers.Put(l.w)
	l.w = nil
}

// message is the Message of a transaction.
type message struct{ t *transaction }

// Abort aborts the transaction.
func (m message) Abort() { m.t.Abort() }

// Write sends p, or buffers it for a larger write.
func (m message) Write(p []byte) (int, error) {
	if err := m.t.writePart(func(c content) error { return c.write(p) }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush sends what Write has buffered.
func (m message) Flush() error { return m.t.writePart(content.flush) }

// writePart calls part to send a part of the message.
func (t *transaction) writePart(part func(content) error) error {
	if err := t.enter(context.Background()); err != nil {
		return err
	}
	defer t.leave()
	if t.stage != stageMessage {
		return t.fail("message", errors.New("write after its end"))
	}
	err := part(t.content)
	if err != nil {
		reply, refused := t.earlyRefusal(err)
		session := refused && aboutSession(reply)
		if session {
			err = t.hop.sessionError(t.conn, "", reply)
		}
		err = t.fail("message", err)
		if refused && !session {
			t.countRefused(t.accepted, reply)
			t.err = &ReplyError{Reply: reply, Err: err}
			err = t.err
		}
	}
	return err
}

// Commit sends the end and waits for the reply.
func (m message) Commit(ctx context.Context) (wire.Reply, error) {
	t := m.t
	if err := t.enter(ctx); err != nil {
		return wire.Reply{}, err
	}
	defer t.leave()
	if t.stage != stageMessage {
		return wire.Reply{}, t.fail("message", errors.New("ended twice"))
	}
	if reply, err := t.beforeEnd(); err != nil || !reply.IsZero() {
		return t.refusedEnd(reply, err)
	}
	// From here on nothing interrupts: neither ctx, nor Abort, nor a shutdown.
	if !t.guard() || ctx.Err() != nil {
		return wire.Reply{}, t.fail("message", context.Cause(ctx))
	}
	t.stage = stageEnding
	reply, intact, err := t.end()
	if !intact || aboutSession(reply) {
		return t.refusedEnd(reply, err)
	}
	if t.replies == nil {
		t.countRefused(t.accepted, reply)
	}
	if reply.Positive() {
		t.conn.errorCount = 0
	}
	// RFC 3030 does not say whether a refused last chunk leaves a transaction
	// open, so it is reset.
	_, chunked := t.content.(*chunks)
	t.hop.release(t.conn, chunked && !reply.Positive())
	t.drop()
	return reply, nil
}

// refusedEnd closes the connection after the reply to a message, or an error.
func (t *transaction) refusedEnd(reply wire.Reply, err error) (wire.Reply, error) {
	if err == nil && aboutSession(reply) {
		return wire.Reply{}, t.fail("end of message", t.hop.sessionError(t.conn, "", reply))
	}
	if err == nil && t.replies == nil {
		t.countRefused(t.accepted, reply)
	}
	t.closeConn()
	return reply, err
}

// beforeEnd makes the end ready and checks that the connection is open and quiet: a
// reply that has arrived would be taken for the one to the end. It returns an early
// refusal, which ends the message.
func (t *transaction) beforeEnd() (wire.Reply, error) {
	err := t.content.prepareEnd()
	if err == nil {
		var quiet bool
		if quiet, err = t.conn.quiet(); quiet {
			return wire.Reply{}, nil
		}
	}
	if reply, refused := t.earlyRefusal(err); refused {
		return reply, nil
	}
	if err == nil {
		err = errUnasked
	}
	return wire.Reply{}, t.fail("message", err)
}

// end sends the end with the buffered rest of the message, and reads the reply. An
// intact connection can carry another message.
func (t *transaction) end() (reply wire.Reply, intact bool, err error) {
	began := time.Now()
	if sent, err := t.content.end(); err != nil {
		if reply, refused := t.earlyRefusal(err); refused {
			return reply, false, nil
		}
		if sent {
			err = fmt.Errorf("%w: %w", ErrReplyLost, err)
		}
		return wire.Reply{}, false, t.fail("end of message", err)
	}
	reply, closing, err := t.finalReply()
	if err == nil {
		t.hop.config.Meter.Took(t.hop.name, StepReply, time.Since(began))
	}
	if errors.Is(err, errUnasked) && t.goodbyeFollows() {
		return reply, false, nil
	}
	if err != nil {
		if errors.Is(err, wire.ErrBadReply) {
			t.replies = nil // their recipients are unknown
		}
		return wire.Reply{}, false, t.fail("end of message", fmt.Errorf("%w: %w", ErrReplyLost, err))
	}
	return reply, !closing, nil
}

// finalReply reads the reply to the message. After a closing one the connection
// ends.
func (t *transaction) finalReply() (reply wire.Reply, closing bool, err error) {
	if t.hop.config.LMTP {
		return t.mergedReply()
	}
	reply, err = t.conn.readChecked(t.conn.timeouts.Dot)
	return reply, reply.Code == codeClosing, err
}

// goodbyeFollows reports whether a 421 follows the final reply: a server may limit
// the messages on a connection, and say so at once.
func (t *transaction) goodbyeFollows() bool {
	reply, err := t.conn.readReply(earlyReplyWait)
	return err == nil && reply.Code == codeClosing
}

// earlyRefusal returns the refusal that may be the cause of an error before the end
// of the message: of a chunk, or, after a failed write, the one with which the next
// hop has closed the connection.
func (t *transaction) earlyRefusal(cause error) (reply wire.Reply, refused bool) {
	var chunk chunkError
	if errors.As(cause, &chunk) {
		return chunk.reply, !chunk.reply.IsZero()
	}
	for {
		reply, err := t.conn.readReply(earlyReplyWait)
		if err != nil {
			return wire.Reply{}, false
		}
		if reply.Positive() && t.unanswered > 0 {
			t.unanswered-- // to an earlier chunk
			continue
		}
		return reply, refusal(reply)
	}
}
