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

// bodyBuffer gathers the pieces of a message into writes of this many bytes.
const bodyBuffer = 64 << 10

// largePiece is the size from which a piece is written as it is.
const largePiece = 16 << 10

// earlyReplyWait is how long a reply is looked for that should be there already.
const earlyReplyWait = time.Second

// finalDot ends a message whose last line is complete.
const finalDot = ".\r\n"

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, bodyBuffer) }}

func getWriter(w io.Writer) *bufio.Writer {
	b := writers.Get().(*bufio.Writer)
	b.Reset(w)
	return b
}

func putWriter(b *bufio.Writer) {
	b.Reset(nil)
	writers.Put(b)
}

// content is how a message goes to the next hop: behind DATA, or in chunks. An
// error may be a chunkError.
type content interface {
	write(p []byte) error
	flush() error

	// prepareEnd makes everything ready for the end. All that the next hop was to
	// answer so far, it has.
	prepareEnd() error

	// end sends the end, in one write with what was kept back. Sent reports
	// whether any byte of it went out: the kernel took it.
	end() (sent bool, err error)

	// free gives buffers back.
	free()
}

// lines is the content that goes behind DATA.
type lines struct {
	conn    *conn
	w       *bufio.Writer
	raw     bool // what is written is not dot-stuffed
	stuffer stuffer
}

// write keeps p for a larger write, or sends it. A large p is not copied.
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

// prepareEnd makes room for the dot.
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
	l.w.WriteString(finalDot) // prepareEnd made room
	err = l.w.Flush()
	return l.w.Buffered() < len(finalDot), err
}

func (l *lines) free() {
	putWriter(l.w)
	l.w = nil
}

// message is the Message of a transaction whose content may come.
type message struct{ t *transaction }

// Abort aborts the transaction.
func (m message) Abort() { m.t.Abort() }

// Write sends p, or keeps it for a larger write.
func (m message) Write(p []byte) (int, error) {
	if err := m.t.writePart(func(c content) error { return c.write(p) }); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush sends what Write has kept.
func (m message) Flush() error { return m.t.writePart(content.flush) }

// pass passes a part of the message on.
func (t *transaction) writePart(part func(content) error) error {
	if err := t.enter(context.Background()); err != nil {
		return err
	}
	defer t.leave()
	if t.stage != stageMessage {
		return t.fail("message", errors.New("written to after its end"))
	}
	err := part(t.content)
	if err != nil {
		reply, refused := t.earlyRefusal(err)
		err = t.fail("message", err)
		if refused {
			t.err = &ReplyError{Reply: reply, Err: err}
			err = t.err
		}
	}
	return err
}

// Commit sends the end and waits for the reply to it.
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
		t.closeConn()
		return reply, err
	}
	// From here on nothing interrupts: not ctx, not Abort, not a shutdown.
	if !t.guard() || ctx.Err() != nil {
		return wire.Reply{}, t.fail("message", context.Cause(ctx))
	}
	t.stage = stageEnding
	reply, intact, err := t.end()
	if !intact {
		t.closeConn()
		return reply, err
	}
	if reply.Positive() {
		t.conn.errorCount = 0
	}
	// Whether a last chunk that was refused leaves a transaction open is
	// nowhere said, so that one is reset.
	_, chunked := t.content.(*chunks)
	t.hop.release(t.conn, chunked && !reply.Positive())
	t.drop()
	return reply, nil
}

// beforeEnd makes the end ready and looks whether the next hop is still there
// and silent. It must be: a reply that is there already would be taken for the
// one to the end. A refusal is returned, and ends the message.
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

// end sends the end, with what is left of the message, and reads the reply. The
// connection is intact when it can carry another message.
func (t *transaction) end() (reply wire.Reply, intact bool, err error) {
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
	if errors.Is(err, errUnasked) && t.goodbyeFollows() {
		return reply, false, nil
	}
	if err != nil {
		if errors.Is(err, wire.ErrBadReply) {
			t.replies = nil // to whom they belong is unknown
		}
		return wire.Reply{}, false, t.fail("end of message", fmt.Errorf("%w: %w", ErrReplyLost, err))
	}
	return reply, !closing, nil
}

// finalReply reads the reply to the message, behind which nothing may follow.
// After a closing one the connection ends.
func (t *transaction) finalReply() (reply wire.Reply, closing bool, err error) {
	if t.hop.config.LMTP {
		return t.mergedReply()
	}
	reply, err = t.conn.readChecked(t.conn.timeouts.Dot)
	return reply, reply.Code == codeClosing, err
}

// goodbyeFollows reports whether what follows the final reply is a 421: a server
// may limit the messages on a connection, and say so unasked.
func (t *transaction) goodbyeFollows() bool {
	reply, err := t.conn.readReply(earlyReplyWait)
	return err == nil && reply.Code == codeClosing
}

// earlyRefusal looks for a refusal that came before the message was ended, once
// something went wrong: a chunk was refused, or a write failed because the next
// hop had sent its refusal and closed the connection.
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
			t.unanswered-- // to a chunk before
			continue
		}
		return reply, refusal(reply)
	}
}
