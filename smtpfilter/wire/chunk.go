package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// This file implements BDAT (RFC 3030). go-smtp sees DATA instead, and the session a
// Body as with DATA. Between the chunks the Body reads the commands and answers them.
// The session's reply is the one to the last chunk.

// chunk is the state of a message in chunks. The zero chunk is that of DATA.
type chunk struct {
	used   bool
	binary bool  // MAIL has BODY=BINARYMIME
	size   int64 // of the current chunk
	left   int64 // the rest of it
	total  int64 // the sizes of all chunks so far
	last   bool
	acked  bool // the current chunk was answered with 250
	cr     bool // the last byte consumed is a CR, which the next may complete

	refusal  Reply // the reply to a chunk that no session sees
	answered bool  // the client does not wait for the session's reply
	instead  Reply // the reply in its place, to another command
}

// errNoChunk ends a message whose client sends other commands than BDAT.
var errNoChunk = errors.New("commands in place of the next chunk")

// withChunk sets the argument of BDAT: the size in decimal, then LAST or nothing (RFC
// 3030, section 2).
func (cmd Command) withChunk(arg string) (Command, Reply) {
	digits, word, more := strings.Cut(arg, " ")
	word = strings.TrimLeft(word, " ")
	cmd.last = len(word) == len("LAST") && strings.EqualFold(word, "LAST")
	if arg == "" || more && !cmd.last {
		return Command{}, NewReply(501, "5.5.4 Syntax: BDAT size [LAST]")
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || size < 0 || digits != strconv.FormatInt(size, 10) {
		return Command{}, NewReply(501, "5.5.4 The chunk size must be a number of bytes")
	}
	cmd.size = size
	return cmd, Reply{}
}

// binary reports whether MAIL announces a message that may hold any byte.
func (cmd Command) binary() bool {
	return slices.ContainsFunc(cmd.Params, func(p string) bool { return strings.EqualFold(p, "BODY=BINARYMIME") })
}

// beginChunk begins the next chunk.
func (b *Body) beginChunk(cmd Command) {
	ch := &b.chunk
	ch.used, ch.acked = true, false
	ch.size, ch.left, ch.last = cmd.size, cmd.size, cmd.last
	if limit := b.c.MaxMessageBytes(); limit > 0 && ch.size > limit-ch.total {
		b.breakRule(ErrTooLarge)
		return
	}
	ch.total += ch.size
}

// takeChunks does the work of take for BDAT.
func (b *Body) takeChunks() (piece []byte, ok bool) {
	ch := &b.chunk
	for b.broken == nil && b.end == nil {
		switch {
		case ch.left > 0:
			data := b.c.in.bytes()
			if len(data) == 0 {
				return nil, false
			}
			piece = b.takePart(data[:min(int64(len(data)), ch.left)])
		case ch.last:
			piece = b.endChunks()
		case !b.nextChunk():
			return nil, false
		}
		if len(piece) > 0 {
			return piece, true
		}
	}
	return nil, true
}

// takePart consumes data, a part of a chunk, and returns what may be passed on: all but
// a CR at its end, which the next byte may complete, perhaps in the next chunk.
func (b *Body) takePart(data []byte) []byte {
	ch := &b.chunk
	used, piece := len(data), data
	switch {
	case ch.binary:
	case ch.cr && data[0] == '\n':
		ch.cr = false
		used, piece = 1, crlf
	case ch.cr:
		ch.cr = false
		used, piece = 0, b.bareCR()
	default:
		if data[used-1] == '\r' {
			ch.cr = true
			piece = data[:used-1]
		}
		if hasBare(piece) && b.normalizes() {
			piece, _ = b.normalizeText(piece, false, false)
		}
		b.checkText(piece)
	}
	b.c.in.discard(used)
	ch.left -= int64(used)
	b.count(len(piece))
	return piece
}

// hasBare reports whether text, which neither follows a CR nor ends in one, holds a
// bare CR or LF.
func hasBare(text []byte) bool {
	lines := 0
	for rest := text; ; lines++ {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			break
		}
		if i == 0 || rest[i-1] != '\r' {
			return true
		}
		rest = rest[i+1:]
	}
	return bytes.Count(text, crlf[:1]) != lines
}

// endChunks ends the last chunk.
func (b *Body) endChunks() []byte {
	if b.chunk.cr {
		b.chunk.cr = false
		piece := b.bareCR()
		b.count(len(piece))
		return piece
	}
	b.end = io.EOF
	return nil
}

// nextChunk answers the chunk that was read and looks for the next BDAT command. It
// returns false if more must be read first, and sets end if none follows.
func (b *Body) nextChunk() bool {
	c, ch := b.c, &b.chunk
	if !ch.acked {
		ch.acked = true
		c.out = NewReply(250, fmt.Sprintf("2.0.0 %d octets received", ch.size)).Append(c.out)
	}
	for ch.acked && b.end == nil {
		data := c.in.bytes()
		i := bytes.IndexByte(data, '\n')
		switch {
		case i >= MaxCommandLine || i < 0 && len(data) >= MaxCommandLine:
			c.sayLast(NewReply(500, "5.5.2 Command line too long"))
		case i < 0:
			return false
		default:
			c.in.discard(i + 1)
			b.between(bytes.TrimSuffix(data[:i+1], crlf))
		}
		if c.last {
			ch.answered = true
			b.end = errNoChunk
		}
	}
	return true
}

// between carries out a command line, without its CRLF, between two chunks.
func (b *Body) between(line []byte) {
	c, ch := b.c, &b.chunk
	if reply := checkFraming(line); !reply.IsZero() {
		c.sayLast(reply)
		return
	}
	cmd, reply := parseCommand(string(line), c.terms())
	switch {
	case !reply.IsZero():
		c.refuse(line, reply)
	case c.countIdle(cmd):
	case cmd.Verb == "BDAT":
		b.beginChunk(cmd)
	case cmd.Verb == "NOOP":
		c.out = NewReply(250, "2.0.0 Ok").Append(c.out)
	case cmd.Verb == "RSET":
		b.end, ch.answered = ErrReset, true
		ch.instead = NewReply(250, "2.0.0 Ok")
	case cmd.Verb == "QUIT":
		b.end, ch.answered = ErrReset, true
		ch.instead = NewReply(221, "2.0.0 Bye")
	default:
		c.refuse(line, NewReply(503, "5.5.1 The message is not complete; send BDAT or RSET"))
	}
}
