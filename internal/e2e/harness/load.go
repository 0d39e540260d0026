package harness

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// A Load is clients that send messages through a gate.
type Load struct {
	t          testing.TB
	addr       string
	tempfail   bool // new clients may get 421, too
	turns      chan struct{}
	clients    sync.WaitGroup
	begun      atomic.Int64
	Tempfailed atomic.Int64 // replies of 421

	mu   sync.Mutex
	sent map[string]bool // ids of the messages that were answered with 250
}

// StartLoad starts clients: four that make a connection for each message, and two that
// keep theirs. If tempfail is set, a new client may get 421 as well.
func StartLoad(t testing.TB, addr string, tempfail bool) *Load {
	l := &Load{t: t, addr: addr, tempfail: tempfail, turns: make(chan struct{}), sent: map[string]bool{}}
	for range 4 {
		l.clients.Go(func() { l.run(false) })
	}
	for range 2 {
		l.clients.Go(func() { l.run(true) })
	}
	return l
}

// During calls do, and has the clients begin n messages meanwhile.
func (l *Load) During(n int, do func()) {
	var fed sync.WaitGroup
	fed.Go(func() {
		for range n {
			l.turns <- struct{}{}
		}
	})
	do()
	fed.Wait()
}

// Stop ends the clients and returns the ids of the messages that were answered with 250.
func (l *Load) Stop() map[string]bool {
	close(l.turns)
	l.clients.Wait()
	return l.sent
}

// HandoverGrace is how long a gate that has handed over gives a new client to begin its
// first transaction. A client that takes longer may get 421.
const HandoverGrace = 5 * time.Second

// run sends messages as one client, until no turn is left.
func (l *Load) run(keep bool) {
	var c *Client
	var dialled time.Time
	for range l.turns {
		if l.t.Failed() {
			continue
		}
		id := fmt.Sprintf("m%d", l.begun.Add(1))
		for taken := false; !taken; {
			var err error
			fresh := c == nil
			if fresh {
				dialled = time.Now()
				c, err = l.dial(dialled)
			}
			if c != nil {
				taken, err = l.send(c, id, fresh, dialled)
			}
			if err != nil {
				l.t.Errorf("%s: %v", id, err)
				taken = true // do not try it again
			}
			if c != nil && (err != nil || !taken || !keep) {
				c.Close()
				c = nil
			}
		}
	}
	if c != nil {
		c.Close()
	}
}

// mayTempfail reports whether a new client may get 421.
func (l *Load) mayTempfail(dialled time.Time) bool {
	return l.tempfail || time.Since(dialled) >= HandoverGrace
}

// dial connects. It returns neither a client nor an error if the reply is a 421 that is
// allowed.
func (l *Load) dial(began time.Time) (*Client, error) {
	c, err := Dial(l.addr, "")
	if err != nil && l.mayTempfail(began) && strings.Contains(err.Error(), `"421 4.3.2 `) {
		l.Tempfailed.Add(1)
		return nil, nil
	}
	return c, err
}

// send sends a message. It reports false if the client gets 421 instead, which is
// allowed only between transactions.
func (l *Load) send(c *Client, id string, fresh bool, dialled time.Time) (taken bool, err error) {
	from := id + "@example.com"
	reply, err := c.Ask("MAIL FROM:<" + from + ">")
	if err == nil && strings.HasPrefix(reply, "421 4.3.2 ") && (!fresh || l.mayTempfail(dialled)) {
		l.Tempfailed.Add(1)
		return false, nil
	}
	if err != nil || !strings.HasPrefix(reply, "250") {
		return false, fmt.Errorf("MAIL: %q, %w", reply, err)
	}
	for _, step := range [][2]string{
		{"RCPT TO:<b@example.net>", "250"},
		{"DATA", "354"},
		{SmallMessage(from, id) + ".", "250"},
	} {
		if reply, err := c.Ask(step[0]); err != nil || !strings.HasPrefix(reply, step[1]) {
			return false, fmt.Errorf("%.20q: %q, %w", step[0], reply, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[id] = true
	return true, nil
}

var messageID = regexp.MustCompile(`(?m)^Message-ID: <(m\d+)@example\.com>\r$`)

// WantOnce checks that the next hop has each message exactly once, and no other.
func WantOnce(t testing.TB, sink *smtptest.Sink, sent map[string]bool) {
	t.Helper()
	copies := map[string]int{}
	for _, m := range sink.Messages() {
		id := messageID.FindSubmatch(m.Body)
		if id == nil {
			t.Errorf("a message came changed: %.500q", m.Body)
			continue
		}
		copies[string(id[1])]++
	}
	for id := range sent {
		if copies[id] != 1 {
			t.Errorf("%s: %d copies", id, copies[id])
		}
		delete(copies, id)
	}
	if len(copies) > 0 {
		t.Errorf("came, but were not answered with 250: %v", copies)
	}
	CheckSink(t, sink)
}

// CheckSink checks that the next hop got nothing that SMTP forbids a client to send.
func CheckSink(t testing.TB, sink *smtptest.Sink) {
	t.Helper()
	if v := sink.Violations(); len(v) > 0 {
		t.Errorf("the next hop got what no client may send: %q", v)
	}
}
