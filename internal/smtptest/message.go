package smtptest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
)

// receiver receives a message: after DATA, or in chunks.
type receiver struct {
	s       *session
	m       Message
	sum     hash.Hash
	raw     int64 // bytes as received
	faulted bool  // the config's fault was sent: nothing else is answered any more
	refused bool  // a chunk was refused, and so are the others
}

// newReceiver begins a message of the open transaction.
func (s *session) newReceiver() *receiver {
	return &receiver{s: s, sum: sha256.New(),
		m: Message{Conn: s.n, Hello: s.hello, XCLIENT: s.xclient, Commands: s.commands, Mail: s.mail, Rcpts: s.rcpts}}
}

// add takes bytes as received, and the text that they stand for.
func (r *receiver) add(raw, text []byte) {
	r.raw += int64(len(raw))
	r.m.Size += int64(len(text))
	r.sum.Write(text)
	if !r.s.sink.config.DropBodies {
		r.m.Raw = append(r.m.Raw, raw...)
		r.m.Body = append(r.m.Body, text...)
	}
}

// fault disturbs the message if the config says so.
func (r *receiver) fault() error {
	fault := r.s.sink.config.Body
	if fault == nil || r.faulted || r.raw < fault.After {
		return nil
	}
	r.faulted = true
	return r.s.send(fault.Reply)
}

// record records the message as far as it came.
func (r *receiver) record() {
	r.sum.Sum(r.m.Sum[:0])
	s := r.s.sink
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, r.m)
	s.changed.Broadcast()
}

// conclude answers the end of the message: over LMTP once for each recipient. It
// records the message first: a client that has the reply finds the message.
func (r *receiver) conclude() error {
	const usual = "250 2.0.0 Ok: queued"
	r.m.Complete = true
	switch {
	case r.faulted:
	case r.s.sink.config.LMTP:
		for _, rcpt := range r.m.Rcpts {
			r.m.Replies = append(r.m.Replies, r.s.choose(". "+rcpt, usual))
		}
	default:
		r.m.Replies = []string{r.s.choose(".", usual)}
	}
	if len(r.m.Replies) > 0 {
		r.m.Reply = r.m.Replies[0]
	}
	r.record()
	for _, reply := range r.m.Replies {
		if err := r.s.send(reply); err != nil {
			return err
		}
	}
	return nil
}

// readBody reads the message after DATA, up to and including its end: the line
// "." alone. A line ends at CRLF, never at a bare CR or LF (RFC 5321, section
// 2.3.8).
func (r *receiver) readBody() error {
	lineStart, lastCR := true, false
	for {
		if err := r.fault(); err != nil {
			return err
		}
		raw, err := r.s.in.ReadSlice('\n') // a line, or as much of it as fits
		if lineStart && string(raw) == ".\r\n" {
			return nil
		}
		if len(raw) > 0 {
			text := raw
			if lineStart && raw[0] == '.' {
				text = raw[1:]
			}
			r.add(raw, text)
			lineStart = bytes.HasSuffix(raw, []byte("\r\n")) || lastCR && raw[0] == '\n'
			lastCR = raw[len(raw)-1] == '\r'
		}
		if err != nil && err != bufio.ErrBufferFull {
			return err
		}
	}
}

// parseBDAT parses a BDAT command.
func parseBDAT(line string) (size int64, last bool, err error) {
	words := strings.Split(line, " ")
	if len(words) == 3 && words[2] == "LAST" {
		last = true
		words = words[:2]
	}
	if len(words) != 2 {
		return 0, false, errors.New("not a BDAT command")
	}
	n, err := strconv.ParseUint(words[1], 10, 63)
	return int64(n), last, err
}

// executeBDAT reads a chunk (RFC 3030), and answers it. It reads a refused chunk
// as well: its bytes are not commands.
func (s *session) executeBDAT(line string) error {
	size, last, err := parseBDAT(line)
	if err != nil || !slices.Contains(s.sink.config.Extensions, "CHUNKING") {
		s.violation("%q: invalid, or not offered", line)
		return errors.New("no chunk can be read")
	}
	if len(s.rcpts) == 0 || s.chunks != nil && s.chunks.refused {
		if _, err := io.CopyN(io.Discard, s.in, size); err != nil {
			return err
		}
		return s.answer(line, "503 5.5.1 Error: no transaction is open that takes a chunk")
	}
	s.commands = append(s.commands, line)
	if s.chunks == nil {
		s.chunks = s.newReceiver()
	}
	r := s.chunks
	r.m.Commands = s.commands
	if err := r.readChunk(size); err != nil {
		return err
	}
	r.m.Chunks = append(r.m.Chunks, size)
	if last {
		s.chunks = nil
		s.reset()
		return r.conclude()
	}
	if r.faulted {
		return nil
	}
	reply, err := s.reply(line, fmt.Sprintf("250 2.0.0 %d octets received", size))
	r.refused = !positive(reply)
	return err
}

// readChunk reads the bytes of a chunk.
func (r *receiver) readChunk(size int64) error {
	piece := make([]byte, min(size, 32<<10))
	for {
		if err := r.fault(); err != nil || size == 0 {
			return err
		}
		n, err := r.s.in.Read(piece[:min(size, int64(len(piece)))])
		size -= int64(n)
		r.add(piece[:n], piece[:n])
		if err != nil {
			return err
		}
	}
}
