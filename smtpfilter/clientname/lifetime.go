package clientname

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Package net does not say how long an answer holds. So the answers are read here as
// they pass on its connections to the name server.

// lifetimes collects for how long the answers to some questions may be kept.
type lifetimes struct {
	mu    sync.Mutex
	heard bool
	least time.Duration
}

// shortest returns how long what follows from the answers may be kept.
func (l *lifetimes) shortest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.heard {
		return unknownLife
	}
	return min(max(l.least, leastLife), mostLife)
}

// note reads an answer. Those that package net goes on to reject, as forged ones,
// are read, too: they can only shorten the time.
func (l *lifetimes) note(message []byte) {
	lasts, ok := lifetime(message)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.heard || lasts < l.least {
		l.heard, l.least = true, lasts
	}
}

// lifetime returns how long an answer may be kept: the least TTL of its records. The
// answer that there are none is kept as the zone's SOA record says (RFC 2308,
// section 5). It reports false for what is no whole answer.
func lifetime(message []byte) (lasts time.Duration, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Truncated || p.SkipAllQuestions() != nil {
		return 0, false
	}
	for {
		record, err := p.AnswerHeader()
		if err == dnsmessage.ErrSectionDone {
			break
		}
		if err != nil || p.SkipAnswer() != nil {
			return 0, false
		}
		if ttl := seconds(record.TTL); !ok || ttl < lasts {
			lasts, ok = ttl, true
		}
	}
	if ok {
		return lasts, true
	}
	for {
		record, err := p.AuthorityHeader()
		if err != nil {
			return unknownLife, true
		}
		if record.Type != dnsmessage.TypeSOA {
			if p.SkipAuthority() != nil {
				return unknownLife, true
			}
			continue
		}
		soa, err := p.SOAResource()
		if err != nil {
			return unknownLife, true
		}
		return seconds(min(record.TTL, soa.MinTTL)), true
	}
}

// seconds returns a TTL as a duration.
func seconds(ttl uint32) time.Duration { return time.Duration(ttl) * time.Second }

// dial returns a Dial whose connections are listened to.
func (l *lifetimes) dial(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if udp, ok := c.(*net.UDPConn); ok {
			return &datagrams{udp, l}, nil
		}
		return &stream{Conn: c, heard: l}, nil
	}
}

// datagrams is a connection over UDP: each Read is a message.
type datagrams struct {
	*net.UDPConn
	heard *lifetimes
}

// Read reads a message.
func (c *datagrams) Read(p []byte) (int, error) {
	n, err := c.UDPConn.Read(p)
	if err == nil {
		c.heard.note(p[:n])
	}
	return n, err
}

// stream is a connection over TCP: each message has its length in front, in two bytes
// (RFC 1035, section 4.2.2), and package net asks one question on each.
type stream struct {
	net.Conn
	heard *lifetimes
	got   []byte
}

// Read reads a part of a message.
func (c *stream) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.got = append(c.got, p[:n]...)
	if len(c.got) > 2 {
		if whole := 2 + int(binary.BigEndian.Uint16(c.got)); len(c.got) >= whole {
			c.heard.note(c.got[2:whole])
			c.got = c.got[whole:]
		}
	}
	return n, err
}
