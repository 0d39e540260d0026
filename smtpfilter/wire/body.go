package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// The reasons to refuse a message for its bytes. After one the rest can only be
// discarded, and the connection ends after the reply.
var (
	// ErrBareNewline reports a CR or LF alone, which some servers take for the
	// end of a line and so of a message (RFC 5321, section 2.3.8).
	ErrBareNewline = errors.New("bare CR or LF in the message")

	// ErrNUL reports a NUL (obsolete by RFC 5322, section 4), which some servers
	// drop before they look for the end.
	ErrNUL = errors.New("NUL in the message")

	// ErrTooLarge reports a message of more than Config.MaxMessageBytes.
	ErrTooLarge = errors.New("message too large")

	// ErrHeaderTooLarge reports a header section above the limit of Header.
	ErrHeaderTooLarge = errors.New("header section too large")

	// ErrReset reports that the client has aborted the message between two
	// chunks, with RSET or QUIT. The session's reply is not sent.
	ErrReset = errors.New("the client has aborted the message")
)

// Body is a message that the client is sending. With DATA it is all bytes between the
// 354 reply and CRLF.CRLF, dot-stuffing included; with BDAT it is the bytes of the
// chunks. If bare newlines are normalized, it is the result of that.
type Body struct {
	c        *Conn
	rest     []byte // returned by the next Next
	size     int64
	atStart  bool  // DATA: the next byte begins a line
	broken   error // the first rule that was broken
	end      error // io.EOF after the message, or why its end was not reached
	pace     pace
	chunk    chunk
	newlines newlines
}

// newBody returns the message that the current command begins.
func newBody(c *Conn) *Body {
	b := &Body{
		c:        c,
		atStart:  true,
		pace:     pace{rate: c.cfg.MinDataRate, received: int64(len(c.in.bytes()))},
		newlines: newlines{normalize: c.cfg.Normalize != nil && c.cfg.Normalize(c.Client().Addr.Addr())},
	}
	if c.cmd.Verb == "BDAT" {
		b.chunk.binary = c.binary
		b.beginChunk(c.cmd)
	}
	return b
}

// Body returns the message that the client is sending, after the 354 reply to DATA or
// an accepted BDAT, or nil.
func (c *Conn) Body() *Body { return c.body }

// Stuffed reports whether the pieces are dot-stuffed: with DATA, not with BDAT.
func (b *Body) Stuffed() bool { return !b.chunk.used }

// Binary reports whether the message has BODY=BINARYMIME (RFC 3030): after the header
// section any byte is valid, and no rule about line ends applies.
func (b *Body) Binary() bool { return b.chunk.binary }

// Size returns the number of bytes read so far as RFC 1870 counts them.
func (b *Body) Size() int64 { return b.size }

// Next returns the next piece of the message, valid until the next call of Next,
// Header, Ready or Discard, and io.EOF after the last. A piece holds no part of the
// final dot, and no bare CR, bare LF or NUL unless the message is binary. Next answers
// all chunks but the last. The error is io.ErrUnexpectedEOF if the client closes the
// connection, os.ErrDeadlineExceeded if it is silent or too slow, and ErrReset if it
// aborts the message.
func (b *Body) Next() ([]byte, error) {
	if len(b.rest) > 0 {
		piece := b.rest
		b.rest = nil
		return piece, nil
	}
	if b.broken == nil && b.end == nil {
		piece := b.advance(b.c.cfg.DataTimeout)
		if b.broken == nil && len(piece) > 0 {
			return piece, nil
		}
	}
	if b.broken != nil {
		return nil, b.broken
	}
	return nil, b.end
}

// Header returns the header section up to and including the empty line, or the whole
// message if it has none. More than limit bytes are ErrHeaderTooLarge. Like a piece of
// Next, it is valid until the next call. Also in a binary message it must consist of
// lines that all servers read in the same way, or a sender could hide in it.
func (b *Body) Header(limit int) ([]byte, error) {
	section, err := b.header(limit)
	if err == nil && b.Binary() {
		b.checkText(section)
		if hasBare(section) {
			b.breakRule(ErrBareNewline)
		}
		if b.broken != nil {
			return nil, b.broken
		}
	}
	return section, err
}

func (b *Body) header(limit int) ([]byte, error) {
	var header []byte // mostly of one piece
	for {
		piece, err := b.Next()
		if err == io.EOF {
			return header, nil
		}
		if err != nil {
			return nil, err
		}
		held := len(header)
		if held == 0 {
			header = piece
		} else {
			header = append(header, piece...)
		}
		end, whole := headerEnd(header, held)
		if end > limit {
			b.broken = ErrHeaderTooLarge
			return nil, b.broken
		}
		if whole {
			b.rest = piece[end-held:]
			return header[:end:end], nil
		}
		if held == 0 {
			header = bytes.Clone(piece) // the next call overwrites it
		}
	}
}

// headerEnd returns the end of the header section in text, whose first seen bytes have
// no end, or the end of text.
func headerEnd(text []byte, seen int) (end int, whole bool) {
	if bytes.HasPrefix(text, []byte("\r\n")) {
		return 2, true
	}
	from := max(seen-3, 0)
	if i := bytes.Index(text[from:], []byte("\r\n\r\n")); i >= 0 {
		return from + i + 4, true
	}
	return len(text), false
}

// Discard reads to the end of the message, or with BDAT to the end of the current
// chunk. An error says that it did not find the end; the connection then ends after
// the reply.
//
// If a rule was broken inside DATA the connection ends, too. The client has a limited
// time and number of bytes to reach the end and receive the reason. The connection
// also ends if the end of a normalized message was CR CRLF.CRLF: some senders do not
// take that for an end.
func (b *Body) Discard() error {
	b.rest = nil
	if b.chunk.used {
		return b.discardChunk()
	}
	budget := int64(discardBytes)
	var deadline time.Time
	for b.end == nil {
		timeout := b.c.cfg.DataTimeout
		if b.broken != nil {
			if deadline.IsZero() {
				deadline = time.Now().Add(min(timeout, discardTimeout))
			}
			timeout = time.Until(deadline)
		}
		n := len(b.advance(timeout))
		if b.broken != nil {
			budget -= int64(n)
		}
		if b.end == nil && (budget < 0 || !deadline.IsZero() && time.Until(deadline) < 0) {
			b.end = b.broken
		}
	}
	if b.broken != nil || b.end != io.EOF || b.newlines.afterCR {
		b.c.last = true
	}
	if b.end != io.EOF {
		return b.end
	}
	return nil
}

// Limits of what a client may send after its message has broken a rule.
const (
	discardTimeout = 5 * time.Second
	discardBytes   = 16 << 20
)

// Ready reports whether Next would return without waiting for the client. The last
// piece of Next is no longer valid.
func (b *Body) Ready() bool {
	if len(b.rest) == 0 && b.broken == nil && b.end == nil {
		piece, ok := b.take()
		if !ok {
			return false
		}
		if b.broken == nil {
			b.rest = piece
		}
	}
	return true
}

// TimedOut reports whether err says that the client was silent for too long, or slower
// than Config.MinDataRate.
func TimedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Interrupted reports whether err says that the gate is shutting down.
func Interrupted(err error) bool { return errors.Is(err, errInterrupted) }

// finalDot ends a message for go-smtp's data reader.
const finalDot = ".\r\n"

// endData gives go-smtp's data reader the final dot, after the session has read the
// message or returned early.
func (b *Body) endData() error {
	c := b.c
	if b.skipped() && c.override.Positive() {
		b.discardChunks()
	}
	if c.last {
		return io.EOF
	}
	if err := b.Discard(); err != nil && !b.chunk.answered {
		return io.EOF
	}
	c.line = finalDot
	return nil
}

// rateGrace is how long a client may take for a message before Config.MinDataRate
// counts: a pause of the network, or a short message, proves nothing.
const rateGrace = time.Minute

// pace enforces a number of bytes a second, on average over a message. Only the time
// spent waiting for the client counts.
type pace struct {
	rate     int64 // bytes a second, 0 for any
	waited   time.Duration
	received int64
}

// left returns how much longer to wait for the client. Each byte prolongs it.
func (p *pace) left() time.Duration {
	earned := time.Duration(float64(p.received) / float64(p.rate) * float64(time.Second))
	return rateGrace + earned - p.waited
}

// fill reads more from the client, waiting at most timeout and no longer than its pace
// allows. The error for a slow client is an os.ErrDeadlineExceeded.
func (p *pace) fill(c *Conn, timeout time.Duration) error {
	if p.rate == 0 {
		return c.fill(timeout)
	}
	left := p.left()
	if left <= 0 {
		return p.tooSlow()
	}
	held, began := len(c.in.bytes()), time.Now()
	err := c.fill(min(timeout, left))
	p.waited += time.Since(began)
	p.received += int64(len(c.in.bytes()) - held)
	if left < timeout && errors.Is(err, os.ErrDeadlineExceeded) {
		return p.tooSlow()
	}
	return err
}

func (p *pace) tooSlow() error {
	return fmt.Errorf("slower than %d bytes a second: %w", p.rate, os.ErrDeadlineExceeded)
}
