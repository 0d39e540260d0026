package nexthop

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"sync"

	"spamgate/smtpfilter/wire"
)

// chunkSize is the largest chunk that is sent. Each one needs a reply, and a next hop
// may hold it in memory as a whole.
const chunkSize = 128 << 10

// chunkHead is the size of the longest command before a chunk.
const chunkHead = len("BDAT 131072 LAST\r\n")

var chunkBuffers = sync.Pool{New: func() any { return new([chunkHead + chunkSize]byte) }}

// chunks is the content in chunks (RFC 3030). Each chunk but the last is full unless
// Flush was called.
//
// With PIPELINING one chunk is sent before the reply to its predecessor has come.
// The last one is sent after all others were accepted.
type chunks struct {
	t      *transaction
	buffer *[chunkHead + chunkSize]byte // the buffered bytes begin at chunkHead
	kept   int

	stuffed   bool // the caller writes with dot-stuffing
	unstuffer wire.Unstuffer
}

// open begins a message whose pieces are dot-stuffed, or not.
func (c *chunks) open(t *transaction, stuffed bool) {
	*c = chunks{t: t, buffer: chunkBuffers.Get().(*[chunkHead + chunkSize]byte), stuffed: stuffed, unstuffer: *wire.NewUnstuffer(c)}
}

func (c *chunks) free() {
	chunkBuffers.Put(c.buffer)
	c.buffer = nil
}

// chunkError reports a chunk that was refused, or whose reply is missing or makes no
// sense. No other chunk may follow it.
type chunkError struct {
	reply wire.Reply // the refusal, or zero
	err   error
}

func (e chunkError) Error() string { return "chunk: " + e.err.Error() }

func (e chunkError) Unwrap() error { return e.err }

var errRefused = errors.New("refused")

func (c *chunks) write(p []byte) error {
	if !c.stuffed {
		_, err := c.Write(p)
		return err
	}
	_, err := c.unstuffer.Write(p)
	return err
}

// Write buffers bytes without dot-stuffing. When more than a chunk is there it sends one.
func (c *chunks) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		if c.kept == chunkSize {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
		n := copy(c.buffer[chunkHead+c.kept:], p)
		c.kept += n
		p = p[n:]
	}
	return all, nil
}

// flush sends the buffered bytes as a chunk that is not the last.
func (c *chunks) flush() error {
	if c.kept == 0 {
		return nil
	}
	if _, err := c.t.conn.Write(c.frame("\r\n")); err != nil {
		return err
	}
	c.kept = 0
	c.t.unanswered++
	ahead := 0
	if c.t.conn.offers.Has("PIPELINING") {
		ahead = 1
	}
	return c.await(ahead)
}

// await reads replies until at most so many are missing. It waits for each as long as
// for a write, because the chunk may still be on its way.
func (c *chunks) await(missing int) error {
	for c.t.unanswered > missing {
		reply, err := c.t.conn.readReply(c.t.conn.timeouts.Write)
		if err != nil {
			return chunkError{err: err}
		}
		c.t.unanswered--
		if refusal(reply) {
			return chunkError{reply, errRefused}
		}
		if !reply.Positive() {
			return chunkError{err: unexpected(reply)}
		}
	}
	return nil
}

func (c *chunks) prepareEnd() error { return c.await(0) }

// end sends the last chunk, which may be empty. It counts as sent from its first
// byte on: some server may take a chunk for complete if the connection ends inside
// it.
func (c *chunks) end() (sent bool, err error) {
	n, err := c.t.conn.Write(c.frame(" LAST\r\n"))
	return n > 0, err
}

// frame returns the buffered bytes with the command before them.
func (c *chunks) frame(ending string) []byte {
	var command [chunkHead]byte
	text := append(command[:0], "BDAT "...)
	text = strconv.AppendInt(text, int64(c.kept), 10)
	text = append(text, ending...)
	start := chunkHead - len(text)
	copy(c.buffer[start:], text)
	return c.buffer[start : chunkHead+c.kept]
}

// stuffer converts the lines of BDAT to those of DATA: it doubles each dot that begins
// a line (RFC 5321, section 4.5.2) and completes the last line. A line begins after
// CRLF, wherever the pieces are cut. The zero stuffer is at the beginning of a
// message.
type stuffer struct {
	midLine bool // the next byte does not begin a line
	lastCR  bool // the last byte was a CR
}

var lineWithDot = []byte("\r\n.")

// write writes a piece with its dots doubled.
func (s *stuffer) write(w *bufio.Writer, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if s.lastCR && p[0] == '\n' {
		w.WriteByte('\n') // an error repeats at the next write
		s.midLine, s.lastCR = false, false
		p = p[1:]
	}
	for len(p) > 0 {
		if !s.midLine && p[0] == '.' {
			w.WriteByte('.')
		}
		end := len(p)
		if i := bytes.Index(p, lineWithDot); i >= 0 {
			end = i + len("\r\n")
		}
		if _, err := w.Write(p[:end]); err != nil {
			return err
		}
		s.midLine = !bytes.HasSuffix(p[:end], []byte("\r\n"))
		s.lastCR = p[end-1] == '\r'
		p = p[end:]
	}
	return nil
}

// close completes the last line.
func (s *stuffer) close(w *bufio.Writer) error {
	if !s.midLine {
		return nil
	}
	s.midLine, s.lastCR = false, false
	_, err := w.WriteString("\r\n")
	return err
}
