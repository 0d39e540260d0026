package world

import (
	"context"
	"errors"
	"strings"
	"sync"

	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// A trouble is what the next hop does with a message instead of taking it.
type trouble string

const (
	refusesData trouble = "refuses DATA"
	breaksOff   trouble = "breaks off in the content"
	interrupts  trouble = "refuses in the content"
	refusesEnd  trouble = "refuses the end"
	defersEnd   trouble = "defers the end"
	lost        trouble = "gets the end, and its reply is lost"
	changesMind trouble = "refuses a recipient when it is asked again"
)

// code returns that of the reply to the message.
func (t trouble) code() int {
	return map[trouble]int{refusesData: 554, breaksOff: 451, interrupts: 552, refusesEnd: 554, defersEnd: 452, lost: 451, changesMind: 550}[t]
}

// atEnd reports whether the trouble comes when the gate has decided.
func (t trouble) atEnd() bool { return t == refusesEnd || t == defersEnd || t == lost }

func (t trouble) reply() wire.Reply {
	return wire.NewReply(t.code(), map[int]string{2: "2", 4: "4", 5: "5"}[t.code()/100]+".9.9 next hop: "+string(t))
}

// A mailHop is a next hop in memory.
type mailHop struct {
	mu      sync.Mutex
	m       *message
	trouble trouble
	asked   map[string]bool
	open    int // transactions with a recipient that have not ended
	hopHas
}

// hopHas is what a hop has got.
type hopHas struct {
	delivered []passed
	offered   []passed // whose end has come, and not the reply that takes it
	aborted   []passed
	opened    int     // messages that were begun
	fired     trouble // that has come
}

// passed is a message and the recipients who have it, with the parameters of MAIL and RCPT.
type passed struct {
	envelope nexthop.Envelope
	to       []string
	params   []string
	text     []byte
	raw      bool // without dot-stuffing
}

// about says which message comes next, and what happens to it.
func (h *mailHop) about(m *message, t trouble) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.m, h.trouble, h.asked, h.hopHas = m, t, map[string]bool{}, hopHas{}
}

// forget forgets what a world before has left open.
func (h *mailHop) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = 0
}

// has returns what came since.
func (h *mailHop) has() hopHas {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hopHas
}

// fire reports whether a trouble comes now.
func (h *mailHop) fire(t trouble) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble == t {
		h.fired = t
	}
	return h.trouble == t
}

func (h *mailHop) Begin(e nexthop.Envelope) nexthop.Transaction {
	return &passing{hop: h, passed: passed{envelope: e}}
}

func (h *mailHop) Extensions() wire.Extensions {
	return wire.Extensions{"8BITMIME": nil, "CHUNKING": nil, "DSN": nil, "ENHANCEDSTATUSCODES": nil, "SIZE": {"1000000"}}
}
func (h *mailHop) String() string { return "memory" }
func (h *mailHop) Close() error   { return nil }

// passing is a message on its way to a hop.
type passing struct {
	hop *mailHop
	passed
	begun, ended bool
}

func (p *passing) Rcpt(_ context.Context, to string, params []string) (wire.Reply, error) {
	p.hop.mu.Lock()
	if !p.begun {
		p.begun = true
		p.hop.open++
	}
	again := p.hop.asked[to]
	p.hop.asked[to] = true
	refusal := p.hop.m.refused[to]
	p.hop.mu.Unlock()
	switch {
	case refusal != 0:
		return refusalOf(refusal, to), nil
	case again && p.hop.fire(changesMind):
		return changesMind.reply(), nil
	}
	p.to, p.params = append(p.to, to), append(p.params, strings.Join(params, " "))
	return wire.NewReply(250, "2.1.5 Ok"), nil
}

// refusalOf returns the refusal of a recipient.
func refusalOf(code int, to string) wire.Reply {
	return wire.NewReply(code, map[int]string{450: "4", 550: "5"}[code]+".1.1 next hop: <"+to+"> not here")
}

func (p *passing) Data(_ context.Context, f nexthop.Format) (nexthop.Message, wire.Reply, error) {
	if p.hop.fire(refusesData) {
		return nil, refusesData.reply(), nil
	}
	p.hop.mu.Lock()
	defer p.hop.mu.Unlock()
	p.raw = f != nexthop.Stuffed
	p.hop.opened++
	return p, wire.Reply{}, nil
}

var errBroken = errors.New("broken off")

func (p *passing) Write(b []byte) (int, error) {
	switch {
	case p.text == nil: // the tags
	case p.hop.fire(breaksOff):
		return 0, errBroken
	case p.hop.fire(interrupts):
		return 0, &nexthop.ReplyError{Reply: interrupts.reply(), Err: errBroken}
	}
	p.text = append(p.text, b...)
	return len(b), nil
}

func (p *passing) Flush() error { return nil }

func (p *passing) Commit(context.Context) (wire.Reply, error) {
	p.hop.mu.Lock()
	defer p.hop.mu.Unlock()
	if p.ended {
		return wire.Reply{}, nexthop.ErrAborted
	}
	p.end()
	switch t := p.hop.trouble; t {
	case lost, refusesEnd, defersEnd:
		p.hop.fired, p.hop.offered = t, append(p.hop.offered, p.passed)
		if t == lost {
			return wire.Reply{}, nexthop.ErrReplyLost
		}
		return t.reply(), nil
	}
	p.hop.delivered = append(p.hop.delivered, p.passed)
	return wire.NewReply(250, "2.0.0 Ok: queued"), nil
}

func (p *passing) Abort() {
	p.hop.mu.Lock()
	defer p.hop.mu.Unlock()
	if !p.ended && p.text != nil {
		p.hop.aborted = append(p.hop.aborted, p.passed)
	}
	p.end()
}

func (p *passing) end() {
	if p.begun && !p.ended {
		p.hop.open--
	}
	p.ended = true
}
