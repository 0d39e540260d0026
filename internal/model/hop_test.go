package model

import (
	"context"
	"strings"
	"sync"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// hop is a next hop in memory that accepts everything.
type hop struct {
	mu        sync.Mutex
	delivered []delivery
	aborted   []delivery
	opened    int // messages that were begun
}

// delivery is a message and the recipients who have it, with the parameters of MAIL and RCPT.
type delivery struct {
	envelope nexthop.Envelope
	to       []string
	params   []string
	text     []byte
}

// take returns what came since the last call.
func (h *hop) take() (delivered, aborted []delivery, opened int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delivered, aborted, opened = h.delivered, h.aborted, h.opened
	h.delivered, h.aborted, h.opened = nil, nil, 0
	return delivered, aborted, opened
}

func (h *hop) Begin(e nexthop.Envelope) nexthop.Transaction {
	return &passing{hop: h, delivery: delivery{envelope: e}}
}

func (h *hop) Extensions() wire.Extensions {
	return wire.Extensions{"8BITMIME": nil, "CHUNKING": nil, "DSN": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": {"1000000"}}
}
func (h *hop) String() string { return "memory" }
func (h *hop) Close() error   { return nil }

// passing is a message on its way to a hop.
type passing struct {
	hop *hop
	delivery
	aborted bool
}

func (p *passing) Rcpt(_ context.Context, to string, params []string) (wire.Reply, error) {
	p.to, p.params = append(p.to, to), append(p.params, strings.Join(params, " "))
	return wire.NewReply(250, "2.1.5 Ok"), nil
}

func (p *passing) Data(context.Context, nexthop.Format) (nexthop.Message, wire.Reply, error) {
	p.hop.mu.Lock()
	defer p.hop.mu.Unlock()
	p.hop.opened++
	return p, wire.Reply{}, nil
}

func (p *passing) Write(b []byte) (int, error) {
	p.text = append(p.text, b...)
	return len(b), nil
}

func (p *passing) Flush() error { return nil }

func (p *passing) Commit(context.Context) (wire.Reply, error) {
	p.hop.mu.Lock()
	defer p.hop.mu.Unlock()
	if p.aborted {
		return wire.Reply{}, nexthop.ErrAborted
	}
	p.hop.delivered = append(p.hop.delivered, p.delivery)
	return wire.NewReply(250, "2.0.0 Ok: queued"), nil
}

func (p *passing) Abort() {
	p.hop.mu.Lock()
	defer p.hop.mu.Unlock()
	if !p.aborted && p.text != nil {
		p.hop.aborted = append(p.hop.aborted, p.delivery)
	}
	p.aborted = true
}
