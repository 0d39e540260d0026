package clientname

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// leastTTL collects the least TTL of the answers on some connections. Package net does
// not return TTLs, so leastTTL parses the answers that its connections read.
type leastTTL struct {
	mu    sync.Mutex
	known bool
	ttl   time.Duration
}

// bounded returns the TTL within minTTL and maxTTL, defaultTTL if there is none.
func (l *leastTTL) bounded() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		return defaultTTL
	}
	return min(max(l.ttl, minTTL), maxTTL)
}

// add parses an answer. It counts forged answers too, which package net rejects: they
// can only shorten the TTL.
func (l *leastTTL) add(message []byte) {
	ttl, ok := answerTTL(message)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || ttl < l.ttl {
		l.known, l.ttl = true, ttl
	}
}

// answerTTL returns how long an answer may be cached: the least TTL of its records, or
// if it has none, what the zone's SOA record says (RFC 2308, section 5). Ok is false if
// the message is not a complete answer.
func answerTTL(message []byte) (least time.Duration, ok bool) {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Truncated || p.SkipAllQuestions() != nil {
		return 0, false
	}
	answers, err := p.AllAnswers()
	if err != nil {
		return 0, false
	}
	for _, r := range answers {
		if ttl := seconds(r.Header.TTL); !ok || ttl < least {
			least, ok = ttl, true
		}
	}
	if ok {
		return least, true
	}
	authorities, _ := p.AllAuthorities()
	for _, r := range authorities {
		if soa, ok := r.Body.(*dnsmessage.SOAResource); ok {
			return seconds(min(r.Header.TTL, soa.MinTTL)), true
		}
	}
	return defaultTTL, true
}

func seconds(ttl uint32) time.Duration { return time.Duration(ttl) * time.Second }

// dial returns a Dial whose connections add the answers that they read.
func (l *leastTTL) dial(dial Dial) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if udp, ok := c.(*net.UDPConn); ok {
			return &datagrams{udp, l}, nil
		}
		return &stream{Conn: c, least: l}, nil
	}
}

// datagrams is a connection over UDP: each Read is a message.
type datagrams struct {
	*net.UDPConn
	least *leastTTL
}

func (c *datagrams) Read(p []byte) (int, error) {
	n, err := c.UDPConn.Read(p)
	if err == nil {
		c.least.add(p[:n])
	}
	return n, err
}

// stream is a connection over TCP: each message follows its length in two bytes (RFC
// 1035, section 4.2.2).
type stream struct {
	net.Conn
	least *leastTTL
	buf   []byte
}

func (c *stream) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.buf = append(c.buf, p[:n]...)
	if len(c.buf) > 2 {
		if end := 2 + int(binary.BigEndian.Uint16(c.buf)); len(c.buf) >= end {
			c.least.add(c.buf[2:end])
			c.buf = c.buf[end:]
		}
	}
	return n, err
}
