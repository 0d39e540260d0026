package nexthoptest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
)

// chunks gathers a message that comes in chunks (RFC 3030).
type chunks struct {
	m       Message
	sum     hash.Hash
	fault   bodyFault
	refused bool // a chunk was; the others are, too
}

// message is the message as far as it came.
func (c *chunks) message() *Message {
	c.sum.Sum(c.m.Sum[:0])
	return &c.m
}

// parseBDAT reads a BDAT command.
func parseBDAT(line string) (size int64, last bool, err error) {
	words := strings.Split(line, " ")
	if len(words) == 3 && words[2] == "LAST" {
		last = true
		words = words[:2]
	}
	if len(words) != 2 {
		return 0, false, errors.New("no BDAT command")
	}
	n, err := strconv.ParseUint(words[1], 10, 63)
	return int64(n), last, err
}

// executeBDAT reads a chunk, and answers it. One that is refused is read as
// well: its bytes are no commands.
func (s *session) executeBDAT(line string) error {
	size, last, err := parseBDAT(line)
	if err != nil || !slices.Contains(s.sink.config.Extensions, "CHUNKING") {
		s.violation("%q: not understood, or not offered", line)
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
		s.chunks = &chunks{m: s.message(), sum: sha256.New(), fault: bodyFault{s: s}}
	}
	c := s.chunks
	c.m.Commands = s.commands
	if err := s.readChunk(c, size); err != nil {
		return err
	}
	c.m.Chunks = append(c.m.Chunks, size)
	if last {
		m := c.message()
		s.chunks = nil
		s.reset()
		return s.conclude(m, c.fault.sent)
	}
	if c.fault.sent {
		return nil
	}
	reply, err := s.reply(line, fmt.Sprintf("250 2.0.0 %d octets received", size))
	c.refused = !positive(reply)
	return err
}

// readChunk reads the bytes of a chunk. What came is kept also where it fails.
func (s *session) readChunk(c *chunks, size int64) error {
	piece := make([]byte, min(size, 32<<10))
	for {
		if err := c.fault.progress(c.m.Size); err != nil {
			return err
		}
		if size == 0 {
			return nil
		}
		n, err := s.in.Read(piece[:min(size, int64(len(piece)))])
		size -= int64(n)
		c.m.Size += int64(n)
		c.sum.Write(piece[:n])
		if !s.sink.config.DropBodies {
			c.m.Raw = append(c.m.Raw, piece[:n]...)
			c.m.Body = c.m.Raw
		}
		if err != nil {
			return err
		}
	}
}
