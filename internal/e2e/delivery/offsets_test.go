package delivery

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
	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// An emptyChecker is a Checker whose lists are empty.
type emptyChecker struct{}

func (emptyChecker) Judge() verdict.Judge { return emptyLists{} }

type emptyLists struct{}

func (emptyLists) Generation() uint64 { return 1 }
func (emptyLists) Judge(context.Context, *verdict.Message, verdict.Query) (verdict.Verdict, error) {
	return verdict.Verdict{}, nil
}

// An inProcessGate is a gate in the test's process with short timeouts. Those of the
// program are minutes.
type inProcessGate struct {
	server *smtpfilter.Server
	target nexthop.Target
	addr   string
	served chan error
}

// stallTimeout is the timeout of an inProcessGate that is to notice a stall quickly. On
// a busy machine it may end a session that does not stall; see offsets.play.
const stallTimeout = 60 * time.Millisecond

func newInProcessGate(t testing.TB, hop nexthop.SMTPConfig, s smtpfilter.Settings) *inProcessGate {
	t.Helper()
	hop.Hostname = "gate.example"
	hop.ProbeInterval = -1 // so that clients cause all connections
	target, err := nexthop.NewSMTP(hop)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &inProcessGate{
		target: target,
		addr:   listener.Addr().String(),
		served: make(chan error, 1),
		server: smtpfilter.New(smtpfilter.Config{Hostname: "gate.example"}),
	}
	s.Checker, s.NextHop = emptyChecker{}, target
	l, err := g.server.Listen(listener, "", s)
	if err != nil {
		t.Fatal(err)
	}
	go func() { g.served <- l.Serve() }()
	return g
}

// stop stops the gate without waiting for clients.
func (g *inProcessGate) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range []error{g.server.Shutdown(ctx), <-g.served, g.target.Close()} {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("stopping the gate: %v", err)
		}
	}
}

// shortTimeouts returns timeouts for a next hop that are all d.
func shortTimeouts(d time.Duration) nexthop.Timeouts {
	return nexthop.Timeouts{Connect: d, Greeting: d, Mail: d, Rcpt: d, Data: d, Write: d, Dot: d, Quit: d}
}

// A tracked message is sent until it is accepted.
type tracked struct {
	id       string
	accepted bool
	lost     int      // attempts with unknown outcome
	replies  []string // to each attempt
}

func (m *tracked) bytes() []byte {
	return []byte("X-Ledger: " + m.id + "\r\nFrom: <a@example.com>\r\n\r\nbody\r\n.dot\r\n")
}

// attempt sends the message once and notes the reply.
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

// session sends the message. Reply is the one that decided, or "" if the connection
// ended before; ended reports whether the end of the message was sent. It returns an
// error if the gate keeps the connection open and does not reply.
func (m *tracked) session(addr string) (reply string, ended bool, err error) {
	c, err := harness.Connect(addr)
	if err != nil {
		return "", false, nil
	}
	defer c.Close()
	steps := []string{"", "EHLO client.example\r\n", "MAIL FROM:<a@example.com>\r\n", "RCPT TO:<b@example.net>\r\n", "DATA\r\n",
		string(harness.DotStuff(m.bytes())), "QUIT\r\n"}
	for i, step := range steps {
		if _, err := io.WriteString(c, step); err != nil {
			return reply, ended, nil
		}
		ended = ended || i == 5
		answer, err := c.Reply()
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

// attempts is how often a client tries. It is reached only if something hangs.
const attempts = 50

// An offsetCase is one session with a fault.
type offsetCase struct {
	side string // the connection with the fault: "client" or "next hop"
	fault
}

func (c offsetCase) String() string {
	return fmt.Sprintf("%s, byte %d %s, %s", c.side, c.pos, c.direction, c.kind)
}

// TestFaultAtEveryByte plays sessions with a fault at each byte of the client's and of
// the next hop's connection, in both directions, and tries again until the message is
// accepted. No message is lost, and one arrives twice only if a reply was lost.
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
	patient *inProcessGate // nothing times out in it

	mu       sync.Mutex
	shared   map[time.Duration]*inProcessGate // for faults on the client's side, by timeout
	messages []*tracked
	cases    int
	happened int // number of cases in which the fault happened
}

func newOffsets(t testing.TB, side string, kind faultKind) *offsets {
	o := &offsets{t: t, side: side, kind: kind, sink: smtptest.NewSink(t)}
	o.shared = map[time.Duration]*inProcessGate{}
	o.patient = o.newGate(0)
	return o
}

// newGate returns a gate with that timeout for its clients; 0 stands for minutes.
func (o *offsets) newGate(timeout time.Duration) *inProcessGate {
	hop := nexthop.SMTPConfig{Addr: o.sink.Addr(), Reuse: true}
	return newInProcessGate(o.t, hop, smtpfilter.Settings{Rules: wire.Rules{CommandTimeout: timeout, DataTimeout: timeout, WriteTimeout: timeout}})
}

// gateOf returns the gate with that timeout, which all clients share.
func (o *offsets) gateOf(timeout time.Duration) *inProcessGate {
	if timeout == 0 {
		return o.patient
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shared[timeout] == nil {
		o.shared[timeout] = o.newGate(timeout)
	}
	return o.shared[timeout]
}

// run plays a session for each byte of a direction, or for one in five with -short.
func (o *offsets) run(d direction) {
	o.t.Helper()
	length := o.play(offsetCase{o.side, fault{d, -1, o.kind}})
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range 12 {
		workers.Go(func() {
			for pos := range jobs {
				o.play(offsetCase{o.side, fault{d, pos, o.kind}})
			}
		})
	}
	for pos := 0; pos < length; pos += harness.IfShort(1, 5) {
		jobs <- pos
	}
	close(jobs)
	workers.Wait()
	o.t.Logf("%d bytes %s", length, d)
}

// play plays a case and returns the number of bytes that passed in its direction. A gate
// with a stall has a short timeout. On a busy machine that may end the session before
// the fault, or the sessions after it: then play doubles the timeout and plays the case
// again. So the speed of the machine decides how long the test takes, not what it finds.
func (o *offsets) play(c offsetCase) int {
	var timeout time.Duration
	if c.kind == faultStall && c.pos >= 0 {
		timeout = stallTimeout
	}
	for {
		m, happened, passed := o.once(c, timeout)
		if timeout > 0 && timeout < harness.ReplyTimeout/4 && (!happened || !m.accepted) {
			timeout *= 2
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
func (o *offsets) once(c offsetCase, timeout time.Duration) (m *tracked, happened bool, passed int) {
	o.mu.Lock()
	m = &tracked{id: fmt.Sprintf("%d of %s", len(o.messages), c)}
	o.messages = append(o.messages, m)
	o.mu.Unlock()

	var p *faultProxy
	var first, later string
	if o.side == "client" {
		p = newFaultProxy(o.t, o.gateOf(timeout).addr, &c.fault)
		first, later = p.addr(), o.patient.addr
	} else {
		p = newFaultProxy(o.t, o.sink.Addr(), &c.fault)
		hop := nexthop.SMTPConfig{Addr: p.addr(), Reuse: c.pos%2 == 0, Timeouts: shortTimeouts(timeout)}
		g := newInProcessGate(o.t, hop, smtpfilter.Settings{})
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

// settle compares the messages that were accepted with those that arrived.
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

// TestNextHopFaults sends a hundred messages to a next hop with each fault. The client
// gets 4xx, and soon.
func TestNextHopFaults(t *testing.T) {
	t.Parallel()
	for _, f := range nextHopFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.NewSink(t, f.config)
			g := newInProcessGate(t, nexthop.SMTPConfig{Addr: sink.Addr(), Reuse: true, Timeouts: shortTimeouts(stallTimeout)}, smtpfilter.Settings{})
			var wg sync.WaitGroup
			for worker := range 10 {
				wg.Go(func() {
					for i := range 10 {
						m := &tracked{id: fmt.Sprintf("%d-%d", worker, i)}
						// Client.Reply has the deadline.
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
