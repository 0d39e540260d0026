package smtpfilter

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// format returns the format in which the next hop receives the message.
func format(body *wire.Body) nexthop.Format {
	switch {
	case body.Stuffed():
		return nexthop.Stuffed
	case body.Binary():
		return nexthop.Binary
	default:
		return nexthop.Raw
	}
}

// flushEvery bounds how long a slow client's message is buffered, so that the next hop does
// not time out. Together with DataTimeout it is less than the 5 minutes that servers wait.
const flushEvery = 20 * time.Second

// deliver passes the message on and returns the client's reply.
func (s *session) deliver(t *transaction, body *wire.Body, section []byte) wire.Reply {
	msg, reply, err := s.open(t, body, section)
	if err != nil {
		return s.nextHopFailed(t, body, err)
	}
	if msg == nil {
		if err := body.Discard(); err != nil {
			return s.refuseBytes(t, body, err)
		}
		s.logOutcome(t, body.Size(), reply)
		return reply
	}
	verification := s.verify(t, body, section)
	defer verification.abort()
	// The end of Shutdown's time interrupts a wait for a next hop that does not read.
	// Nothing interrupts Commit.
	defer context.AfterFunc(s.server.ctx, msg.Abort)()
	if _, err := msg.Write(s.trace(t, section, body.Stuffed())); err != nil {
		msg.Abort()
		return s.nextHopFailed(t, body, err)
	}
	flushed := time.Now()
	for piece := section; ; {
		_, err := msg.Write(piece)
		if err == nil && !body.Ready() && time.Since(flushed) > flushEvery {
			err = msg.Flush()
			flushed = time.Now()
		}
		if err != nil {
			msg.Abort()
			return s.nextHopFailed(t, body, err)
		}
		if piece, err = body.Next(); err == io.EOF {
			break
		}
		if err != nil {
			msg.Abort()
			return s.refuseBytes(t, body, err)
		}
		if t.digest != nil {
			t.digest.Write(piece)
		}
		verification.write(piece)
	}
	if reply := s.judgeWhole(t, verification); !reply.IsZero() {
		msg.Abort()
		return reply
	}
	if reply := s.checkDuplicate(t, body.Size()); !reply.IsZero() {
		msg.Abort()
		return reply
	}
	reply, each, err := commit(s.server.ctx, msg)
	if err != nil && !errors.Is(err, nexthop.ErrReplyLost) {
		return s.nextHopFailed(t, body, err)
	}
	return s.conclude(t, body.Size(), reply, each, err)
}

// trace returns the fields that the gate adds before the message: at most maxTags tag
// fields, and the Received field.
func (s *session) trace(t *transaction, section []byte, stuffed bool) []byte {
	var b []byte
	t.tags = t.decided.Tags
	if t.decided.Pending {
		t.tags = t.classes.TagsAhead(t.used(t.accepted))
	}
	for _, tag := range t.tags {
		b = append(b, TagField+": "+tag+"\r\n"...)
	}
	b = append(b, receivedField(t.client.Helo, t.client.Addr.Addr(), s.server.cfg.Hostname, s.protocol(t), t.id, time.Now())...)
	if stuffed {
		section = bytes.TrimPrefix(section, []byte("."))
	}
	if len(section) > 0 && (section[0] == ' ' || section[0] == '\t') {
		b = append(b, continuationField...)
	}
	return b
}
