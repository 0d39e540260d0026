package wire

import (
	"bytes"
	"io"
	"time"
)

// advance consumes and returns the next piece of the message, also if it breaks a
// rule, and waits at most timeout for each packet. It sets broken and end.
func (b *Body) advance(timeout time.Duration) []byte {
	for {
		if piece, ok := b.take(); ok {
			return piece
		}
		if !b.read(timeout) {
			return nil
		}
	}
}

// take does the same with the bytes in the buffer, and returns false if more must be
// read first.
func (b *Body) take() (piece []byte, ok bool) {
	if b.chunk.used {
		return b.takeChunks()
	}
	piece = b.scan(b.c.in.bytes(), b.c.in.full())
	return piece, len(piece) > 0 || b.end != nil
}

// read waits at most timeout for more bytes. If none come, it sets end and returns
// false.
func (b *Body) read(timeout time.Duration) bool {
	err := b.pace.fill(b.c, timeout)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.end = err
	return err == nil
}

// scan consumes the complete lines at the start of data, or, if one unfinished line
// fills the buffer, that part of it. The message ends at CRLF.CRLF only.
func (b *Body) scan(data []byte, full bool) []byte {
	used, dots, lines, bare := 0, 0, 0, false
	atStart := b.atStart
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
		b.newlines.endLine(line)
		if !crlf {
			bare = true
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
			b.newlines.cutCR = piece[len(piece)-1] == '\r'
		}
		b.c.in.discard(len(piece))
	}

	bare = bare || bytes.Count(piece, crlf[:1]) != lines
	if (bare || b.newlines.afterLF) && b.normalizes() {
		piece, dots = b.normalizeText(piece, atStart, true)
	}
	b.checkText(piece)
	b.count(len(piece) - dots)
	return piece
}

// checkText checks for a NUL, which only a binary message may hold.
func (b *Body) checkText(piece []byte) {
	if bytes.IndexByte(piece, 0) >= 0 {
		b.breakRule(ErrNUL)
	}
}

// count adds n bytes to the size.
func (b *Body) count(n int) {
	b.size += int64(n)
	if limit := b.c.MaxMessageBytes(); limit > 0 && b.size > limit {
		b.breakRule(ErrTooLarge)
	}
}

// longLine returns what may be passed on of an unfinished line: all but a CR at its
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
