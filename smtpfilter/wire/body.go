package wire

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// The reasons why a message is refused for its bytes. After any of them the
// rest can only be discarded, and the connection ends behind the reply.
var (
	// ErrBareNewline is a CR or LF that stands alone, which some servers
	// take for the end of a line and so of a message (RFC 5321, section
	// 2.3.8).
	ErrBareNewline = errors.New("bare CR or LF in the message")

	// ErrNUL is a NUL, which some servers drop before they look for the end
	// (RFC 5322, section 4 makes it obsolete).
	ErrNUL = errors.New("NUL in the message")

	// ErrTooLarge is a message of more than Config.MaxMessageBytes.
	ErrTooLarge = errors.New("message too large")

	// ErrHeaderTooLarge is a header section longer than was asked for.
	ErrHeaderTooLarge = errors.New("header section too large")
)

// Body is a message on its way in: what stands between the 354 reply and
// CRLF.CRLF, byte for byte as the client sends it, dot-stuffing included.
type Body struct {
	c       *Conn
	rest    []byte // read with the header section, not returned by Next yet
	size    int64
	atStart bool  // the next byte begins a line
	broken  error // the first rule that was broken
	end     error // io.EOF behind the final dot, or why it was not reached
}

func newBody(c *Conn) *Body { return &Body{c: c, atStart: true} }

// Body is the message that the client is sending, once DATA was answered with
// 354, or nil.
func (c *Conn) Body() *Body { return c.body }

// Size is the number of bytes read so far as RFC 1870 counts them.
func (b *Body) Size() int64 { return b.size }

// Next returns the next piece of the message, valid until the next call, and
// io.EOF behind its end. A piece holds no bare CR, bare LF or NUL, and nothing
// of the final dot. io.ErrUnexpectedEOF says that the client went away,
// os.ErrDeadlineExceeded that it fell silent.
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

// Header returns the header section: all up to and with the empty line, or the
// whole message where it has none. More than limit bytes are ErrHeaderTooLarge.
// Like a piece of Next, it is valid until the next call.
func (b *Body) Header(limit int) ([]byte, error) {
	var header []byte // of several pieces; most often there is one
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

// headerEnd finds the end of the header section in text, of which the first
// seen bytes have no end; without one it is the end of text.
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

// Discard reads on to the end of the message. Where a rule was broken the
// connection ends behind the reply, and the client has a bounded time and
// number of bytes to come to the end and hear why. An error says that the end
// was not found; the connection then ends, too.
func (b *Body) Discard() error {
	b.rest = nil
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
	if b.broken != nil || b.end != io.EOF {
		b.c.last = true
	}
	if b.end != io.EOF {
		return b.end
	}
	return nil
}

// What a client may still send once its message has broken a rule.
const (
	discardTimeout = 5 * time.Second
	discardBytes   = 16 << 20
)

// Ready reports whether Next would return at once, without waiting for the
// client.
func (b *Body) Ready() bool {
	return len(b.rest) > 0 || b.broken != nil || b.end != nil || bytes.IndexByte(b.c.in.bytes(), '\n') >= 0
}

// advance consumes and returns the next piece of the message, whether the
// rules hold in it or not, waiting at most timeout for each packet. It sets
// broken and end.
func (b *Body) advance(timeout time.Duration) []byte {
	for {
		piece := b.scan(b.c.in.bytes(), b.c.in.full())
		if len(piece) > 0 || b.end != nil {
			return piece
		}
		if err := b.c.fill(timeout); err != nil {
			b.end = err
			if err == io.EOF {
				b.end = io.ErrUnexpectedEOF
			}
			return nil
		}
	}
}

// scan consumes the whole lines that data begins with, or where the buffer is
// full of one unfinished line, what there is of it. The message ends at a line
// that is a lone dot, if the line before it ended in CRLF: this is CRLF.CRLF
// whatever else was let through.
func (b *Body) scan(data []byte, full bool) []byte {
	used, dots, lines := 0, 0, 0
	for b.end == nil {
		i := bytes.IndexByte(data[used:], '\n')
		if i < 0 {
			break
		}
		line := data[used : used+i+1]
		crlf := i > 0 && line[i-1] == '\r'
		if b.atStart && line[0] == '.' {
			if crlf && len(line) == 3 {
				b.end = io.EOF
				break
			}
			dots++
		}
		if !crlf {
			b.breakRule(ErrBareNewline)
		}
		b.atStart = crlf
		used += i + 1
		lines++
	}
	piece := data[:used]
	if b.end != nil {
		b.c.in.discard(used + 3)
	} else {
		if used == 0 && full {
			piece = b.longLine(data)
			if b.atStart && piece[0] == '.' {
				dots++
			}
			b.atStart = false
		}
		b.c.in.discard(len(piece))
	}

	if bytes.Count(piece, []byte("\r")) != lines {
		b.breakRule(ErrBareNewline)
	}
	if bytes.IndexByte(piece, 0) >= 0 {
		b.breakRule(ErrNUL)
	}
	b.size += int64(len(piece) - dots)
	if limit := b.c.cfg.MaxMessageBytes; limit > 0 && b.size > limit {
		b.breakRule(ErrTooLarge)
	}
	return piece
}

// longLine is what may be passed on of an unfinished line: all but a CR at its
// end, which the next byte may complete.
func (b *Body) longLine(data []byte) []byte {
	if data[len(data)-1] == '\r' {
		return data[:len(data)-1]
	}
	return data
}

func (b *Body) breakRule(err error) {
	if b.broken == nil {
		b.broken = err
	}
}

// TimedOut reports whether err says that the client fell silent.
func TimedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Interrupted reports whether err says that the gate is shutting down.
func Interrupted(err error) bool { return errors.Is(err, errInterrupted) }

// finishBody gives go-smtp's data reader the final dot, once the session has
// read the message or given it up.
func (c *Conn) finishBody() error {
	if c.last {
		return io.EOF
	}
	if err := c.body.Discard(); err != nil {
		return io.EOF
	}
	c.line = append(c.line[:0], ".\r\n"...)
	return nil
}

// Unstuff removes the dot-stuffing (RFC 5321, section 4.5.2) from text, which
// begins at the start of a line. It returns text itself where there is none.
func Unstuff(text []byte) []byte {
	if !bytes.HasPrefix(text, []byte(".")) && !bytes.Contains(text, []byte("\n.")) {
		return text
	}
	out := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		if line[0] == '.' {
			line = line[1:]
		}
		out = append(out, line...)
	}
	return out
}
