package nexthop

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// fakeTarget answers the first recipient with a given reply, 250 for nil, or an error.
type fakeTarget struct {
	name       string
	reply      wire.Reply
	err        error
	extensions wire.Extensions
	asked      int
	closed     int
}

func (f *fakeTarget) Begin(env Envelope) Transaction { return &fakeTransaction{f, env} }
func (f *fakeTarget) Extensions() wire.Extensions    { return f.extensions }
func (f *fakeTarget) String() string                 { return f.name }
func (f *fakeTarget) Close() error                   { f.closed++; return nil }

type fakeTransaction struct {
	target *fakeTarget
	env    Envelope
}

func (f *fakeTransaction) Rcpt(ctx context.Context, _ string, _ []string) (wire.Reply, error) {
	f.target.asked++
	if lookup := f.env.Client.LookupName; lookup != nil {
		lookup(ctx)
	}
	if f.target.err != nil {
		return wire.Reply{}, f.target.err
	}
	if !f.target.reply.IsZero() {
		return f.target.reply, nil
	}
	return wire.NewReply(250, f.target.name), nil
}

func (f *fakeTransaction) Data(context.Context, Format) (Message, wire.Reply, error) {
	return nil, wire.NewReply(554, f.target.name), nil
}

func (f *fakeTransaction) Abort() {}

// host is a mail server that can go away and come back, under one name.
type host struct {
	t     *testing.T
	mu    sync.Mutex
	sink  *smtptest.Sink
	addr  string
	dials int
}

// newHost starts a host and makes a target of it. The target has no probe.
func newHost(t *testing.T, config smtptest.Config) (*host, Target) {
	h, hop := newProbedHost(t, config)
	return h, unprobed{hop}
}

// newProbedHost is newHost with the probe. A host that greets nobody is soon given
// up, any other has the usual time.
func newProbedHost(t *testing.T, config smtptest.Config) (*host, *SMTP) {
	h := &host{t: t}
	h.start(config)
	var timeouts Timeouts
	if config.Replies["GREETING"] == smtptest.Silence {
		timeouts.Greeting = 50 * time.Millisecond
	}
	return h, newSMTP(t, SMTPConfig{Addr: "192.0.2.1:25", Dial: h.dial, Timeouts: timeouts})
}

func (h *host) start(config smtptest.Config) {
	sink := smtptest.NewSink(h.t, config)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sink, h.addr = sink, sink.Addr()
}

// stop takes the host away.
func (h *host) stop() {
	h.sink.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addr = smtptest.Unreachable(h.t)
}

// dial fails if nobody listens at the address.
func (h *host) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	h.mu.Lock()
	h.dials++
	addr := h.addr
	h.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (h *host) check(dials, messages int) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := len(h.sink.Messages()); h.dials != dials || got != messages {
		h.t.Errorf("%d dials, %d messages, not %d and %d", h.dials, got, dials, messages)
	}
}
