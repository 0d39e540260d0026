package model

import (
	"context"
	"sync"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// hop is a next hop in memory that accepts everything.
type hop struct {
	mu        sync.Mutex
	delivered []delivery
	opened    int // messages that were begun
}

// delivery is a message and the recipients who have it.
type delivery struct {
	to   []string
	text []byte
}

// take returns what came since the last call.
func (h *hop) take() (delivered []delivery, opened int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delivered, opened = h.delivered, h.opened
	h.delivered, h.opened = nil, 0
	return delivered, opened
}

func (h *hop) Begin(nexthop.Envelope) nexthop.Transaction { return &passing{hop: h} }

func (h *hop) Extensions() wire.Extensions {
	return wire.Extensions{"8BITMIME": nil, "CHUNKING": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": {"1000000"}}
}
func (h *hop) String() string { return "memory" }
func (h *hop) Close() error   { return nil }

// passing is a message on its way to a hop.
type passing struct {
	hop *hop
	delivery
	aborted bool
}

func (p *passing) Rcpt(_ context.Context, to string, _ []string) (wire.Reply, error) {
	p.to = append(p.to, to)
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
	p.aborted = true
}
