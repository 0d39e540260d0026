package e2e

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

// load is clients that send messages through a gate, as many as they are let.
type load struct {
	t        testing.TB
	addr     string
	tempfail bool // new clients may be told 421 between transactions, too
	turns    chan struct{}
	clients  sync.WaitGroup
	begun    atomic.Int64
	told     atomic.Int64 // clients that were told 421

	mu   sync.Mutex
	sent map[string]bool // messages that were answered with 250
}

// startLoad starts clients of which some make a connection for each message and
// some keep theirs.
func startLoad(t testing.TB, addr string, tempfail bool) *load {
	l := &load{t: t, addr: addr, tempfail: tempfail, turns: make(chan struct{}), sent: map[string]bool{}}
	for range 4 {
		l.clients.Go(func() { l.run(false) })
	}
	for range 2 {
		l.clients.Go(func() { l.run(true) })
	}
	return l
}

// during has so many messages begin while something is done.
func (l *load) during(messages int, do func()) {
	var fed sync.WaitGroup
	fed.Go(func() {
		for range messages {
			l.turns <- struct{}{}
		}
	})
	do()
	fed.Wait()
}

// stop ends the load, and returns the messages that were taken.
func (l *load) stop() map[string]bool {
	close(l.turns)
	l.clients.Wait()
	return l.sent
}

// grace is how long a gate that was succeeded lets a new client take until its first
// transaction. One that is held up for longer may be told 421.
const grace = 5 * time.Second

// run is one client.
func (l *load) run(keep bool) {
	var c *client
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
				taken = true // this one is given up
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

// mayTempfail reports whether a new client may be told 421.
func (l *load) mayTempfail(dialled time.Time) bool { return l.tempfail || time.Since(dialled) >= grace }

// dial connects. Neither a client nor an error means 421.
func (l *load) dial(began time.Time) (*client, error) {
	c, err := dial(l.addr, "")
	if err != nil && l.mayTempfail(began) && strings.Contains(err.Error(), `"421 4.3.2 `) {
		l.told.Add(1)
		return nil, nil
	}
	return c, err
}

// send sends a message. If the client hears 421 instead, which it may only
// between transactions, it was not taken.
func (l *load) send(c *client, id string, fresh bool, dialled time.Time) (taken bool, err error) {
	from := id + "@example.com"
	reply, err := c.ask("MAIL FROM:<" + from + ">")
	if err == nil && strings.HasPrefix(reply, "421 4.3.2 ") && (!fresh || l.mayTempfail(dialled)) {
		l.told.Add(1)
		return false, nil
	}
	if err != nil || !strings.HasPrefix(reply, "250") {
		return false, fmt.Errorf("MAIL: %q, %w", reply, err)
	}
	for _, step := range [][2]string{
		{"RCPT TO:<b@example.net>", "250"},
		{"DATA", "354"},
		{letter(from, id) + ".", "250"},
	} {
		if reply, err := c.ask(step[0]); err != nil || !strings.HasPrefix(reply, step[1]) {
			return false, fmt.Errorf("%.20q: %q, %w", step[0], reply, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[id] = true
	return true, nil
}

var letterID = regexp.MustCompile(`(?m)^Message-ID: <(m\d+)@example\.com>\r$`)

// wantOnce wants every message at the next hop exactly once.
func wantOnce(t testing.TB, sink *smtptest.Sink, sent map[string]bool) {
	t.Helper()
	copies := map[string]int{}
	for _, m := range sink.Messages() {
		id := letterID.FindSubmatch(m.Body)
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
	checkSink(t, sink)
}
