package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
)

// nobody is a Checker whose lists are empty.
type nobody struct{}

func (nobody) Judge() verdict.Judge { return emptyLists{} }

type emptyLists struct{}

func (emptyLists) Generation() uint64 { return 1 }
func (emptyLists) Judge(context.Context, *verdict.Message, verdict.Query) (verdict.Verdict, error) {
	return verdict.Verdict{}, nil
}

// innerGate is a gate within the test's process, with waits of its own: those of
// the real binary are minutes.
type innerGate struct {
	server *smtpfilter.Server
	target nexthop.Target
	addr   string
	served chan error
}

// impatience is how long an innerGate waits where a stall is to end quickly. On a
// busy machine that may be too short for what is no stall; see offsets.play.
const impatience = 60 * time.Millisecond

func newInnerGate(t testing.TB, hop nexthop.SMTPConfig, s smtpfilter.Settings) *innerGate {
	t.Helper()
	hop.Hostname = "gate.example"
	hop.ProbeInterval = -1 // so that every connection is a client's
	target, err := nexthop.NewSMTP(hop)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &innerGate{
		target: target,
		addr:   listener.Addr().String(),
		served: make(chan error, 1),
		server: smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"}),
	}
	s.Checker, s.NextHop = nobody{}, target
	l, err := g.server.Listen(listener, "", s)
	if err != nil {
		t.Fatal(err)
	}
	go func() { g.served <- l.Serve() }()
	return g
}

// stop ends the gate, which does not wait for clients.
func (g *innerGate) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range []error{g.server.Shutdown(ctx), <-g.served, g.target.Close()} {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("stopping the gate: %v", err)
		}
	}
}

// impatient waits for a next hop.
func impatient(d time.Duration) nexthop.Timeouts {
	return nexthop.Timeouts{Connect: d, Greeting: d, Mail: d, Rcpt: d, Data: d, Write: d, Dot: d, Quit: d}
}

// tracked is one message that a client tries to get rid of.
type tracked struct {
	id       string
	accepted bool
	lost     int      // attempts whose outcome the client cannot know
	replies  []string // to each attempt
}

func (m *tracked) bytes() []byte {
	return []byte("X-Ledger: " + m.id + "\r\nFrom: <a@example.com>\r\n\r\nbody\r\n.dot\r\n")
}

// attempt tries once, and takes note of what the client was told.
func (m *tracked) attempt(addr string) error {
	reply, ended, err := m.session(addr)
	m.replies = append(m.replies, reply)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(reply, "250"):
		m.accepted = true
	case reply == "" && ended, strings.Contains(reply, "did not confirm the message"):
		m.lost++
	case reply != "" && reply[0] != '4':
		return fmt.Errorf("the client heard %q", reply)
	}
	return nil
}

// session sends the message. The reply is the one that decided, "" where the
// connection ended without; ended says that the message's end was sent. An error
// is a connection that stays open without a word.
func (m *tracked) session(addr string) (reply string, ended bool, err error) {
	c, err := connect(addr)
	if err != nil {
		return "", false, nil
	}
	defer c.Close()
	steps := []string{"", "EHLO client.example\r\n", "MAIL FROM:<a@example.com>\r\n", "RCPT TO:<b@example.net>\r\n", "DATA\r\n",
		string(stuff(m.bytes())), "QUIT\r\n"}
	for i, step := range steps {
		if _, err := io.WriteString(c, step); err != nil {
			return reply, ended, nil
		}
		ended = ended || i == 5
		answer, err := c.reply()
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			return reply, ended, fmt.Errorf("no reply, and the connection is open: %w", err)
		}
		if err != nil {
			return reply, ended, nil
		}
		if i == 5 || answer[0] > '3' && reply == "" {
			reply = answer
		}
		if answer[0] > '3' {
			return reply, ended, nil
		}
	}
	return reply, ended, nil
}

// attempts is how often a client tries. It is reached only where something
// hangs.
const attempts = 50

// offsetCase is one session with a fault.
type offsetCase struct {
	side string // whose connection has it: "client" or "next hop"
	fault
}

func (c offsetCase) String() string {
	return fmt.Sprintf("%s, byte %d %s, %s", c.side, c.at, c.direction, c.kind)
}

// TestFaultAtEveryByte plays a session with a fault at each byte of the client's
// connection and of the next hop's, in both directions, and tries again until the
// message is accepted. No message is lost, and none comes twice but where a reply
// got lost.
func TestFaultAtEveryByte(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"client", "next hop"} {
		for _, kind := range []faultKind{faultReset, faultStall, faultSplit} {
			t.Run(side+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				o := newOffsets(t, side, kind)
				for _, d := range []direction{toServer, toClient} {
					o.run(d)
				}
				o.settle()
			})
		}
	}
}

// offsets are the sessions with one kind of fault on one side.
type offsets struct {
	t       testing.TB
	side    string
	kind    faultKind
	sink    *smtptest.Sink
	patient *innerGate // in which nothing times out

	mu       sync.Mutex
	shared   map[time.Duration]*innerGate // for faults on the client's side, by impatience
	messages []*tracked
	cases    int
	happened int // cases with a fault
}

func newOffsets(t testing.TB, side string, kind faultKind) *offsets {
	o := &offsets{t: t, side: side, kind: kind, sink: smtptest.NewSink(t)}
	o.shared = map[time.Duration]*innerGate{}
	o.patient = o.newGate(0)
	return o
}

// newGate makes a gate that waits so long for its clients; 0: for minutes.
func (o *offsets) newGate(patience time.Duration) *innerGate {
	hop := nexthop.SMTPConfig{Addr: o.sink.Addr(), Reuse: true}
	return newInnerGate(o.t, hop, smtpfilter.Settings{CommandTimeout: patience, DataTimeout: patience, WriteTimeout: patience})
}

// gateOf is the gate that all clients share who are waited for so long.
func (o *offsets) gateOf(patience time.Duration) *innerGate {
	if patience == 0 {
		return o.patient
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shared[patience] == nil {
		o.shared[patience] = o.newGate(patience)
	}
	return o.shared[patience]
}

// run plays a session for each byte of a direction; with -short for one in five.
func (o *offsets) run(d direction) {
	o.t.Helper()
	length := o.play(offsetCase{o.side, fault{d, -1, o.kind}})
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range 12 {
		workers.Go(func() {
			for at := range jobs {
				o.play(offsetCase{o.side, fault{d, at, o.kind}})
			}
		})
	}
	for at := 0; at < length; at += short(1, 5) {
		jobs <- at
	}
	close(jobs)
	workers.Wait()
	o.t.Logf("%d bytes %s", length, d)
}

// play plays a case, and returns the number of bytes that went through in its
// direction. Where it is about a stall, the gate has little patience, so that it
// ends; on a busy machine that may end the session before the fault, or those
// after it. Such a case is played again with twice the patience: how fast the
// machine is decides how long the test takes, not what it finds.
func (o *offsets) play(c offsetCase) int {
	var patience time.Duration
	if c.kind == faultStall && c.at >= 0 {
		patience = impatience
	}
	for {
		m, happened, passed := o.once(c, patience)
		if patience > 0 && patience < waitLimit/4 && (!happened || !m.accepted) {
			patience *= 2
			continue
		}
		if o.kind == faultSplit && len(m.replies) > 1 || !m.accepted {
			o.t.Errorf("%s: accepted: %v; %q", c, m.accepted, m.replies)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.cases++
		if happened {
			o.happened++
		}
		return passed
	}
}

// once sends one message, first with the fault and then without.
func (o *offsets) once(c offsetCase, patience time.Duration) (m *tracked, happened bool, passed int) {
	o.mu.Lock()
	m = &tracked{id: fmt.Sprintf("%d of %s", len(o.messages), c)}
	o.messages = append(o.messages, m)
	o.mu.Unlock()

	var p *faultProxy
	var first, later string
	if o.side == "client" {
		p = newFaultProxy(o.t, o.gateOf(patience).addr, &c.fault)
		first, later = p.addr(), o.patient.addr
	} else {
		p = newFaultProxy(o.t, o.sink.Addr(), &c.fault)
		hop := nexthop.SMTPConfig{Addr: p.addr(), Reuse: c.at%2 == 0, Timeouts: impatient(patience)}
		g := newInnerGate(o.t, hop, smtpfilter.Settings{})
		defer g.stop(o.t)
		first, later = g.addr, g.addr
	}
	defer p.close()

	err := m.attempt(first)
	p.fault.Store(nil)
	for i := 0; i < attempts && err == nil && !m.accepted; i++ {
		err = m.attempt(later)
	}
	if err != nil {
		o.t.Errorf("%s: %v; %q", c, err, m.replies)
	}
	return m, p.happened.Load() > 0, int(p.passed[c.direction].Load())
}

// settle compares what was accepted with what has come.
func (o *offsets) settle() {
	o.t.Helper()
	for _, g := range o.shared {
		g.stop(o.t)
	}
	o.patient.stop(o.t)
	copies := map[string]int{}
	for _, m := range o.sink.Messages() {
		_, body, _ := bytes.Cut(m.Body, []byte("X-Ledger: "))
		id, _, _ := bytes.Cut(body, []byte("\r\n"))
		sent := tracked{id: string(id)}
		if sha256.Sum256(append([]byte("X-Ledger: "), body...)) != sha256.Sum256(sent.bytes()) {
			o.t.Errorf("came changed: %q", m.Body)
		}
		copies[string(id)]++
	}
	lost, twice := 0, 0
	for _, m := range o.messages {
		n := copies[m.id]
		if n < 1 && m.accepted || n > 1+m.lost {
			o.t.Errorf("%s: %d copies, %d replies lost, %q", m.id, n, m.lost, m.replies)
		}
		lost += m.lost
		twice += max(0, n-1)
	}
	checkSinkCut(o.t, o.sink)
	if o.happened < o.cases*9/10 {
		o.t.Errorf("%d faults in %d cases", o.happened, o.cases)
	}
	o.t.Logf("%d sessions, %d faults; %d replies lost, %d copies too many for it", len(o.messages), o.happened, lost, twice)
}

// nextHopFaults are ways in which a next hop fails.
var nextHopFaults = []struct {
	name   string
	config smtptest.Config
}{
	{"resets connections", replies("GREETING", smtptest.Reset)},
	{"says nothing", replies("GREETING", smtptest.Silence)},
	{"is too busy", replies("GREETING", "421 4.3.2 All server ports are busy")},
	{"speaks another protocol", replies("GREETING", "SSH-2.0-OpenSSH_9.2")},
	{"hangs up at EHLO", replies("EHLO", smtptest.Close, "HELO", smtptest.Close)},
	{"falls silent at MAIL", replies("MAIL", smtptest.Silence)},
	{"resets at RCPT", replies("RCPT", smtptest.Reset)},
	{"answers RCPT with no reply", replies("RCPT", "Ok, go on")},
	{"is shut down at DATA", replies("DATA", "421 4.3.2 Service not available, closing transmission channel")},
	{"resets in the message", smtptest.Config{Body: &smtptest.BodyFault{After: 20, Reply: smtptest.Reset}}},
	{"falls silent behind the message", replies(".", smtptest.Silence)},
	{"hangs up behind the message", replies(".", smtptest.Close)},
}

func replies(pairs ...string) smtptest.Config {
	c := smtptest.Config{Replies: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		c.Replies[pairs[i]] = pairs[i+1]
	}
	return c
}

// TestNextHopFaults sends a hundred messages to a next hop with each fault: the
// client is told 4xx, and soon.
func TestNextHopFaults(t *testing.T) {
	t.Parallel()
	for _, f := range nextHopFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.NewSink(t, f.config)
			g := newInnerGate(t, nexthop.SMTPConfig{Addr: sink.Addr(), Reuse: true, Timeouts: impatient(impatience)}, smtpfilter.Settings{})
			var wg sync.WaitGroup
			for worker := range 10 {
				wg.Go(func() {
					for i := range 10 {
						m := &tracked{id: fmt.Sprintf("%d-%d", worker, i)}
						// The deadline is the client's own patience with each reply.
						if err := m.attempt(g.addr); err != nil || m.accepted || m.replies[0] == "" {
							t.Errorf("message %s: %q, %v; want 4xx", m.id, m.replies, err)
						}
					}
				})
			}
			wg.Wait()
			g.stop(t)
			checkSinkCut(t, sink)
		})
	}
}
