package wire

import (
	"errors"
	"io"
)

// A refused chunk is read to its end, or the connection is closed, so that none of its
// bytes can be taken for a command.

// drainBytes is how many bytes above Config.MaxMessageBytes are read of a refused
// chunk. A larger one closes the connection.
const drainBytes = 16 << 20

// errSkipped ends a message after a refused chunk.
var errSkipped = errors.New("the rest of the message was not wanted")

// discardChunk reads the rest of the current chunk, or the next one if the current one
// is answered already.
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

// skipped reports whether more chunks may come after the session has returned.
func (b *Body) skipped() bool { return b.end == errSkipped && !b.chunk.last }

// discardChunks reads all further chunks, for a session that has accepted the message
// without reading it: its reply belongs to the last chunk.
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

// refuseChunk refuses a BDAT command that no session sees with r, after its chunk was
// read. It also refuses later chunks until the next transaction.
func (c *Conn) refuseChunk(r Reply) {
	c.body = newBody(c)
	c.body.chunk.refusal = r
	c.chunkRefused = true
	c.cmd = Command{}
}

// endRefused reads a refused chunk and answers it.
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

// endAnswered ends a message whose client does not wait for the session's reply.
func (c *Conn) endAnswered() {
	if r := c.body.chunk.instead; !r.IsZero() {
		c.out = r.Append(c.out)
		c.last = r.Code == 221
	}
	c.endTransaction()
	c.cmd, c.override = Command{}, Reply{}
	c.ended = c.last
}
