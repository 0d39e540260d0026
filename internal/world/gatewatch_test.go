package world

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"spamgate/internal/decisions"
)

// A gateList is what is known of a list: which contents serve, and from when to when they may.
type gateList struct {
	mu       sync.Mutex
	versions []*listVersion
	onDisk   []int
	held     bool // what is on the disk never serves
	pinned   bool
}

// A listVersion is a content that may serve from some time on, and does from another.
type listVersion struct {
	domains []int
	from    time.Time
	sure    time.Time // with the gates from number gate on; zero: never. Other gates find it by polling.
	gate    int
}

func (l *gateList) last() *listVersion { return l.versions[len(l.versions)-1] }

// change notes a content that may serve from now on.
func (l *gateList) change(domains []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions = append(l.versions, &listVersion{domains: domains, from: time.Now()})
}

// settle notes from when on the last content serves for certain.
func (l *gateList) settle(t time.Time, gate int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if v := l.last(); v.sure.IsZero() {
		v.sure, v.gate = t, gate
	}
}

// doubt notes that contents may never serve which do not yet for certain.
func (l *gateList) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.versions {
		if v.sure.After(time.Now()) {
			v.sure = time.Time{}
		}
	}
}

// listed reports whether a domain is listed for a message whose MAIL a gate got between a and b:
// perhaps, and for certain.
func (l *gateList) listed(domain int, a, b time.Time, gate int) (perhaps, certain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	certain = true
	for i, v := range l.versions {
		over := false
		for _, next := range l.versions[i+1:] {
			sure := next.sure
			if !sure.IsZero() && gate < next.gate {
				sure = sure.Add(poll)
			}
			over = over || !sure.IsZero() && sure.Before(a)
		}
		if over || v.from.After(b) {
			continue
		}
		has := slices.Contains(v.domains, domain)
		perhaps, certain = perhaps || has, certain && has
	}
	return perhaps, certain
}

// delivered notes that a next hop has a message.
func (w *gateWorld) delivered(d delivery) {
	_, id, _ := strings.Cut(d.text, "X-World: ")
	id, _, _ = strings.Cut(id, "\r\n")
	w.tell("%s has %s of %s for %v", d.hop, id, d.from, d.to)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copies[id] = append(w.copies[id], d)
}

// finish ends the world, and looks at what is left.
func (w *gateWorld) finish() {
	w.wait("keepers", &w.busy)
	w.wait("clients", &w.clients)
	w.tell("nothing fails any more")
	close(w.healed)
	w.mu.Lock()
	for _, h := range w.hops {
		h.faults = nil
	}
	w.mu.Unlock()
	w.net.mu.Lock()
	clear(w.net.lost)
	w.net.clean = true
	w.net.mu.Unlock()
	time.Sleep(2 * time.Minute) // the longest back-off is over, and gates that were to end have ended
	w.checkFlow()
	w.present().signals <- syscall.SIGTERM
	for _, p := range w.gates {
		select {
		case <-p.done:
		case <-time.After(15 * time.Minute): // a next hop may take 10 to answer a message
			w.fail("gate %d does not end", p.number)
			return
		}
	}
	close(w.work)
	w.wait("next hops", &w.serving)
	w.checkMessages()
	w.checkHistory()
	time.Sleep(time.Minute) // what ends by a time has ended
	synctest.Wait()
	if n := len(w.net.open); n > 0 {
		w.fail("%d ends of connections are left", n)
	}
	for _, stack := range strayGoroutines() {
		w.fail("a goroutine is left:\n%s", stack)
	}
}

// wait waits for some, but not for ever.
func (w *gateWorld) wait(who string, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(6 * time.Hour):
		panic(fmt.Sprintf("%s wait for ever", who))
	}
}

// checkFlow checks that mail flows again, and that nothing counts as open which is not: as many clients as
// may come from one address are served. One more is quick, so that the gate stops just after its message.
func (w *gateWorld) checkFlow() {
	first := len(w.plans)
	for i, slow := range []time.Duration{time.Second, time.Second, time.Second, 0} {
		if slow == 0 {
			w.wait("the last clients", &w.clients)
		}
		m := &attempt{id: fmt.Sprintf("probe%d", i), from: 9, header: 9, to: []string{"bob@rcpt.example"}, size: 100}
		w.client(clientPlan{name: m.id, addr: fmt.Sprintf("203.0.113.0:%d", 50000+i), style: "plain", slow: slow, messages: []*attempt{m}})
	}
	w.wait("the last client", &w.clients)
	for _, p := range w.plans[first:] {
		if m := p.messages[0]; !strings.HasPrefix(m.last, "250") {
			w.fail("mail does not flow again: %s has the replies %q %q %q", m.id, m.mail, m.replies, m.last)
		}
	}
	first = 0
	if w.variant.Load() == 2 {
		first = len(w.hops) - 1
	}
	if d := w.copies["probe3"]; w.setup.balance == "priority" && len(d) > 0 && d[0].hop != w.hops[first].name {
		w.fail("%s has the last message, although %s is up and comes first", d[0].hop, w.hops[first].name)
	}
}

// checkMessages compares what became of all messages with what must be.
func (w *gateWorld) checkMessages() {
	sent := map[string]bool{}
	for _, p := range w.plans {
		for _, m := range p.messages {
			sent[m.id] = true
			w.checkMessage(m)
			if w.setup.clean {
				w.checkClean(p, m)
			}
		}
	}
	for id := range w.copies {
		if !sent[id] {
			w.fail("a next hop has the message %q, which nobody sent", id)
		}
	}
}

// checkMessage compares what became of a message with what must be.
func (w *gateWorld) checkMessage(m *attempt) {
	copies := w.copies[m.id]
	accepted := m.accepted()
	if len(copies) > 1 {
		w.fail("%s is there %d times: %+v", m.id, len(copies), copies)
	}
	ok, lost := strings.HasPrefix(m.last, "250"), strings.HasPrefix(m.last, "451 4.4.2")
	switch {
	case ok && len(copies) == 0:
		w.fail("%s was accepted (%s), and no next hop has it", m.id, m.last)
	case m.last != "" && !ok && !lost && len(copies) > 0:
		w.fail("%s was refused (%s), and a next hop has it", m.id, m.last)
	case !m.whole && len(copies) > 0:
		w.fail("%s was not sent whole, and a next hop has it", m.id)
	}
	for _, d := range copies {
		_, text, _ := strings.Cut(d.text, "\r\nFrom: ")
		switch {
		case d.from != m.sender() || "From: "+text != m.text():
			w.fail("%s arrived as another message: from %s, %q", m.id, d.from, d.text)
		case !strings.HasPrefix(d.text, "Received: "):
			w.fail("%s arrived with %q first", m.id, d.text[:40])
		}
		for _, to := range d.to {
			if !slices.Contains(m.to, to) || len(m.replies) == len(m.to) && !slices.Contains(accepted, to) {
				w.fail("%s was delivered to %s, and the gate accepted %v", m.id, to, accepted)
			}
		}
	}
	w.checkListed(m, copies)
}

// checkClean checks that a message got what it is due in a world where nothing fails, although lists are
// edited, and the gate is reloaded and handed over. After a handover a client may be turned away
// between two messages, and within one if it takes longer than the shutdown.
func (w *gateWorld) checkClean(p clientPlan, m *attempt) {
	if !strings.HasPrefix(m.mail, "250") {
		if m.mail != "" && !strings.HasPrefix(m.mail, "421 4.3.2") {
			w.fail("%s: MAIL is answered %q in a world where nothing fails", m.id, m.mail)
		}
		return
	}
	if p.slow > 2*time.Second && (m.last == "" || strings.HasPrefix(m.last, "421")) {
		return
	}
	for i, to := range m.to {
		if i >= len(m.replies) {
			w.fail("%s got no reply to the RCPT of %s in a world where nothing fails", m.id, to)
			continue
		}
		due := map[string]string{"nobody": "550 5.1.1", "later": "450 4.2.0", "eve": "550 5.7.1 <eve@elsewhere.example> relay"}
		local, _, _ := strings.Cut(to, "@")
		if reply := m.replies[i]; !strings.Contains(reply, "refused: list") && !strings.HasPrefix(reply, cmp.Or(due[local], "250")) {
			w.fail("%s: the RCPT of %s is answered %q in a world where nothing fails", m.id, to, reply)
		}
	}
	if len(m.accepted()) > 0 && !strings.HasPrefix(m.last, "250") && !strings.Contains(m.last, "refused: list") {
		w.fail("%s is answered %q in a world where nothing fails", m.id, m.last)
	}
}

// checkListed checks that the lists decided which were live when MAIL came.
func (w *gateWorld) checkListed(m *attempt, copies []delivery) {
	if m.gate == nil || m.mail == "" {
		return
	}
	listed := func(domain int) (perhaps, certain bool) {
		for _, l := range []*gateList{&w.blocked, &w.managed} {
			p, c := l.listed(domain, m.sent, m.replied, m.gate.number)
			perhaps, certain = perhaps || p, certain || c
		}
		return perhaps, certain
	}
	envelope, surely := listed(m.from)
	header, headerSurely := listed(m.header)
	for i, reply := range m.replies {
		refused, exempt := strings.Contains(reply, "refused: list"), strings.HasPrefix(m.to[i], "postmaster@")
		switch {
		case refused && (!envelope || exempt):
			w.fail("%s is refused to %s (%s), and no list has the sender", m.sender(), m.to[i], reply)
		case surely && !exempt && strings.HasPrefix(reply, "2"):
			w.fail("%s is accepted for %s, although a list has the sender", m.sender(), m.to[i])
		}
	}
	if strings.Contains(m.last, "refused: list") && !header && !envelope {
		w.fail("%s is refused (%s), and no list has a sender in its header", m.id, m.last)
	}
	for _, d := range copies {
		for _, to := range d.to {
			if (surely || headerSurely && len(m.replies) == len(m.to)) && !strings.HasPrefix(to, "postmaster@") {
				w.fail("%s was delivered to %s, although a list has a sender of it", m.id, to)
			}
		}
	}
}

// checkHistory compares the history of decisions with what clients and next hops saw.
func (w *gateWorld) checkHistory() {
	history := decisions.NewReader(filepath.Join(w.present().dir, "decisions"))
	defer history.Close()
	rows := map[string]map[string]int{}
	err := history.Each(context.Background(), decisions.Query{}, func(d decisions.Decision) error {
		if rows[d.Sender] == nil {
			rows[d.Sender] = map[string]int{}
		}
		rows[d.Sender][d.Event] += d.Count
		if d.Event == "accepted" {
			for _, to := range d.Recipients {
				rows[d.Sender][to]++
			}
		}
		return nil
	})
	if err != nil {
		w.fail("the history cannot be read: %v", err)
	}
	for _, p := range w.plans {
		for _, m := range p.messages {
			has, copies := rows[m.sender()], len(w.copies[m.id])
			ok := strings.HasPrefix(m.last, "250")
			switch n := has["accepted"]; {
			case n > copies:
				w.fail("the history has %s accepted %d times, and next hops have it %d times", m.id, n, copies)
			case ok && n != 1 && !w.crashed.Load():
				w.fail("the history has %s accepted %d times, and the client got %s", m.id, n, m.last)
			}
			for i, reply := range m.replies {
				if n := has[m.to[i]]; n > 0 && !strings.HasPrefix(reply, "2") {
					w.fail("the history has %s accepted for %s, who got %s", m.id, m.to[i], reply)
				}
			}
			refused := 0
			for _, reply := range append(slices.Clone(m.replies), m.last) {
				if strings.Contains(reply, "refused: list") {
					refused++
				}
			}
			if n := has["refused"]; n != refused && !w.crashed.Load() && p.abort == "" && p.cut == 0 {
				w.fail("the history has %s refused %d times, and the client was %d times", m.id, n, refused)
			}
		}
	}
}
