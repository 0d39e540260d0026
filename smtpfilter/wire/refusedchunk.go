package wire

import (
	"errors"
	"io"
)

// This file is what becomes of a chunk that is refused: it is read to its end all
// the same, or the connection closed, so that none of its bytes is taken for a
// command.

// drainBytes is how many bytes beyond Config.MaxMessageBytes a refused chunk may
// have. Where it has more the connection is closed, not the chunk read.
const drainBytes = 16 << 20

// errSkipped is the end of a message of which a chunk was refused.
var errSkipped = errors.New("the rest of the message was not wanted")

// discardChunk reads the rest of the current chunk, where that is not too much.
// Where it was answered already, the next one is meant, whose turn it is.
func (b *Body) discardChunk() error {
	ch := &b.chunk
	for ch.acked && b.end == nil {
		if !b.nextChunk() {
			b.read(b.c.cfg.DataTimeout)
		}
	}
	if b.end == nil {
		b.end = errSkipped
		if ch.left-drainBytes > b.c.MaxMessageBytes() {
			b.c.last = true
		}
	}
	for b.end == errSkipped && ch.left > 0 && !b.c.last {
		n := min(int64(len(b.c.in.bytes())), ch.left)
		b.c.in.discard(int(n))
		if ch.left -= n; ch.left > 0 && b.read(b.c.cfg.DataTimeout) {
			b.end = errSkipped
		}
	}
	switch {
	case b.end == io.EOF || b.end == errSkipped:
		return nil
	case !ch.answered:
		b.c.last = true
	}
	return b.end
}

// skipped reports that there may be chunks to come of a message that the session
// has done with.
func (b *Body) skipped() bool { return b.end == errSkipped && !b.chunk.last }

// discardChunks reads all chunks to come, for a session that has taken the
// message without wanting to see it: its reply belongs to the last chunk.
func (b *Body) discardChunks() {
	for b.skipped() && !b.c.last {
		b.end = nil
		for !b.nextChunk() {
			if !b.read(b.c.cfg.DataTimeout) {
				b.c.override = NewReply(421, "4.4.2 Connection lost")
				return
			}
		}
		if b.broken == ErrTooLarge {
			b.c.override = NewReply(552, "5.3.4 Message too large")
			b.discardChunk()
			return
		}
		b.discardChunk()
	}
}

// refuseChunk makes r the reply to a BDAT command that no session sees, once its
// chunk was read. Until a transaction is begun anew, so is what follows it.
func (c *Conn) refuseChunk(r Reply) {
	c.body = newBody(c)
	c.body.chunk.refusal = r
	c.chunkLost = true
	c.cmd = Command{}
}

// endRefused reads a chunk that was refused and says so.
func (c *Conn) endRefused() error {
	b := c.body
	err := b.discardChunk()
	c.body = nil
	if err != nil {
		return err
	}
	c.out = b.chunk.refusal.Append(c.out)
	if c.last {
		c.fault = b.chunk.refusal
	}
	c.refusals++
	c.limitRefusals()
	return nil
}

// endAnswered ends a message whose client does not wait for what the session
// has to say about it.
func (c *Conn) endAnswered() {
	if r := c.body.chunk.instead; !r.IsZero() {
		c.out = r.Append(c.out)
		c.last = r.Code == 221
	}
	c.endTransaction()
	c.cmd, c.override = Command{}, Reply{}
	c.ended = c.last
}
