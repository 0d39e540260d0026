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

// message is the Message of a transaction whose DATA was accepted.
type message struct{ t *transaction }

// Abort aborts the transaction.
func (m message) Abort() { m.t.Abort() }

// Write sends p, or keeps it for a larger write. A large p is not copied.
func (m message) Write(p []byte) (n int, err error) {
	err = m.t.pass(func(body *bufio.Writer) error {
		if len(p) < largePiece {
			n, err = body.Write(p)
		} else if err = body.Flush(); err == nil {
			n, err = m.t.conn.Write(p)
		}
		return err
	})
	return n, err
}

// Flush sends what Write has kept.
func (m message) Flush() error { return m.t.pass((*bufio.Writer).Flush) }

// pass passes a part of the message on.
func (t *transaction) pass(write func(*bufio.Writer) error) error {
	leave, err := t.enter(context.Background())
	if err != nil {
		return err
	}
	defer leave()
	if t.stage != stageMessage {
		return t.fail("message", errors.New("written to after its end"))
	}
	if err = write(t.body); err != nil {
		reply, refused := t.earlyReply()
		err = t.fail("message", err)
		if refused {
			t.err = &ReplyError{Reply: reply, Err: err}
			err = t.err
		}
	}
	return err
}

// Commit sends the final dot and waits for the reply to it.
func (m message) Commit(ctx context.Context) (wire.Reply, error) {
	t := m.t
	leave, err := t.enter(ctx)
	if err != nil {
		return wire.Reply{}, err
	}
	defer leave()
	if t.stage != stageMessage {
		return wire.Reply{}, t.fail("message", errors.New("ended twice"))
	}
	if reply, err := t.beforeDot(); err != nil || !reply.IsZero() {
		t.closeConn()
		return reply, err
	}
	// From here on nothing interrupts: not ctx, not Abort, not a shutdown.
	if !t.guard() || ctx.Err() != nil {
		return wire.Reply{}, t.fail("message", context.Cause(ctx))
	}
	t.stage = stageEnding
	reply, intact, err := t.dot()
	if !intact {
		t.closeConn()
		return reply, err
	}
	if reply.Positive() {
		t.conn.wear = 0
	}
	t.hop.release(t.conn, false)
	t.drop()
	return reply, nil
}

// beforeDot makes room for the dot and looks whether the next hop is still
// there and silent. It must be: a reply that is there already would be taken
// for the one to the dot. A refusal is returned, and ends the message.
func (t *transaction) beforeDot() (wire.Reply, error) {
	var err error
	if t.body.Available() < len(finalDot) {
		err = t.body.Flush()
	}
	if err == nil {
		var quiet bool
		if quiet, err = t.conn.quiet(); quiet {
			return wire.Reply{}, nil
		}
	}
	if reply, refused := t.earlyReply(); refused {
		return reply, nil
	}
	if err == nil {
		err = errUnasked
	}
	return wire.Reply{}, t.fail("message", err)
}

// dot sends the final dot with what is left of the message, and reads the
// reply. The connection is intact when it can carry another message.
//
// The dot counts as sent when the kernel took any byte of it.
func (t *transaction) dot() (reply wire.Reply, intact bool, err error) {
	t.body.WriteString(finalDot) // beforeDot made room
	if err := t.body.Flush(); err != nil {
		if reply, refused := t.earlyReply(); refused {
			return reply, false, nil
		}
		if t.body.Buffered() < len(finalDot) {
			err = fmt.Errorf("%w: %w", ErrReplyLost, err)
		}
		return wire.Reply{}, false, t.fail("end of message", err)
	}
	reply, err = t.conn.readReply(t.conn.timeouts.Dot)
	if err == nil {
		err = t.conn.check(reply, 0)
	}
	if errors.Is(err, errUnasked) && t.saidGoodbye() {
		return reply, false, nil
	}
	if err != nil {
		return wire.Reply{}, false, t.fail("end of message", fmt.Errorf("%w: %w", ErrReplyLost, err))
	}
	return reply, reply.Code != codeClosing, nil
}

// saidGoodbye reports whether what follows the reply to the dot is a 421: a
// server may limit the messages on a connection, and say so unasked.
func (t *transaction) saidGoodbye() bool {
	reply, err := t.conn.readReply(earlyReplyWait)
	return err == nil && reply.Code == codeClosing
}

// earlyReply looks for a refusal that came before the message was ended. Servers
// send one and close the connection, which is why a write failed.
func (t *transaction) earlyReply() (reply wire.Reply, refused bool) {
	reply, err := t.conn.readReply(earlyReplyWait)
	return reply, err == nil && refusal(reply)
}
