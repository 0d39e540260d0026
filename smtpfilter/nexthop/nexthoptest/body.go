package nexthoptest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"hash"
)

// readBody reads a message up to and with its end, which is the line "." and
// nothing else: a line ends at CRLF, never at a bare CR or LF (RFC 5321,
// section 2.3.8). It fills in m's bytes, also where it fails. After each piece
// it tells progress the number of bytes read, and ends with its error.
func readBody(in *bufio.Reader, m *Message, drop bool, progress func(size int64) error) error {
	b := body{m: m, drop: drop, sum: sha256.New(), lineStart: true}
	defer func() { b.sum.Sum(m.Sum[:0]) }()
	for {
		if err := progress(b.size); err != nil {
			return err
		}
		piece, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			b.add(piece)
			return err
		}
		if b.lineStart && string(piece) == ".\r\n" {
			return nil
		}
		b.add(piece)
	}
}

// body gathers the pieces of one message.
type body struct {
	m    *Message
	drop bool
	sum  hash.Hash
	size int64 // bytes as received

	lineStart bool // the next piece begins a line
	lastCR    bool // the last piece ended in CR
}

// add takes a piece as it was received: a line, or a part of one.
func (b *body) add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	b.size += int64(len(piece))
	text := piece
	if b.lineStart && piece[0] == '.' {
		text = piece[1:]
	}
	b.lineStart = bytes.HasSuffix(piece, []byte("\r\n")) || b.lastCR && piece[0] == '\n'
	b.lastCR = piece[len(piece)-1] == '\r'

	b.sum.Write(text)
	b.m.Size += int64(len(text))
	if !b.drop {
		b.m.Raw = append(b.m.Raw, piece...)
		b.m.Body = append(b.m.Body, text...)
	}
}

// receive reads the message behind DATA and answers its final dot.
func (s *session) receive(m *Message) error {
	fault := bodyFault{s: s}
	err := readBody(s.in, m, s.sink.config.DropBodies, fault.progress)
	if err != nil {
		s.record(m)
		return err
	}
	return s.conclude(m, fault.sent)
}

// bodyFault disturbs a message where the config says so.
type bodyFault struct {
	s    *session
	sent bool // nothing else is answered any more
}

func (f *bodyFault) progress(size int64) error {
	fault := f.s.sink.config.Body
	if fault == nil || f.sent || size < fault.After {
		return nil
	}
	f.sent = true
	return f.s.send(fault.Reply)
}

// conclude answers the end of a message, unless it is silent: over LMTP once for
// each recipient. The message is recorded before the answer is sent: who has the
// answer finds the message.
func (s *session) conclude(m *Message, silent bool) error {
	const usual = "250 2.0.0 Ok: queued"
	m.Complete = true
	switch {
	case silent:
	case s.sink.config.LMTP:
		for _, rcpt := range m.Rcpts {
			m.Replies = append(m.Replies, s.choose(". "+rcpt, usual))
		}
	default:
		m.Replies = []string{s.choose(".", usual)}
	}
	if len(m.Replies) > 0 {
		m.Reply = m.Replies[0]
	}
	s.record(m)
	for _, reply := range m.Replies {
		if err := s.send(reply); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) record(m *Message) {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	s.sink.messages = append(s.sink.messages, *m)
	s.sink.changed.Broadcast()
}
