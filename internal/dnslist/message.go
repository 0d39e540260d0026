package dnslist

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxOfDomain bounds the names that one domain may take of MaxNames: without it, a
// reverse-path of many labels would leave none for the senders in the header.
const maxOfDomain = 5

// Message has the questions of one mail message. All of them are asked of the lists that
// were configured when the message began. It is safe for concurrent use; concurrent calls
// wait for each other.
type Message struct {
	cache *cache
	lists *lists

	mu     sync.Mutex
	names  []string // that were asked of any list, at most MaxNames
	asked  []asked  // at most MaxNames for each list
	known  map[question]Result
	waited time.Duration // in all calls of Result
}

// question is a name or a domain that a list is asked for.
type question struct {
	list *list
	name string
}

// asked is a question that was asked.
type asked struct {
	question
	entry *entry
}

// Ask begins the questions of a list for domains, and does not wait for the answers.
// Domains are in normal form, as sender.Address.Domain returns them. Domains that were
// asked before cost nothing, and so do lists that are not configured.
func (m *Message) Ask(list string, domains ...string) {
	l := m.lists.byName[list]
	if l == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask(l, domains)
}

// ask implements Ask. The caller must hold mu.
func (m *Message) ask(l *list, domains []string) {
	var few [4][]string
	wanted, longest := few[:0], 0
	for _, d := range domains {
		if m.find(question{l, d}) != nil || !isDomain(d) {
			continue
		}
		names := l.names(d)
		wanted = append(wanted, names)
		longest = max(longest, len(names))
	}
	// The first name of each domain comes first, then the second of each.
	for i := range longest {
		for _, names := range wanted {
			if i < len(names) {
				m.askName(l, names[i])
			}
		}
	}
}

// find returns the entry of a question that was asked, or nil.
func (m *Message) find(q question) *entry {
	for i := range m.asked {
		if m.asked[i].question == q {
			return m.asked[i].entry
		}
	}
	return nil
}

// names returns the names that a list is asked for a domain, the most important first:
// its registered domain, the domain itself, and then its parents from short to long.
func (l *list) names(domain string) []string {
	if l.Exact {
		return []string{domain}
	}
	names := appendNames(make([]string, 0, maxOfDomain), domain)
	slices.Reverse(names)
	if last := len(names) - 1; last > 1 {
		names = slices.Insert(names[:last], 1, domain)
	}
	return names[:min(len(names), maxOfDomain)]
}

// askName begins a question, unless the message has asked for too many names.
func (m *Message) askName(l *list, name string) {
	q := question{l, name}
	if m.find(q) != nil || len(name)+1+len(l.Zone) > maxName {
		return
	}
	if !slices.Contains(m.names, name) {
		if len(m.names) == MaxNames {
			return
		}
		m.names = append(m.names, name)
	}
	if e := m.cache.findAddrs(l, name); e != nil {
		m.asked = append(m.asked, asked{q, e})
	}
}

// Result returns what a list says of a domain. It asks if Ask has not, and waits until
// the answer is there, the list's Timeout is used up or ctx ends. A list that is not
// configured has no domain.
func (m *Message) Result(ctx context.Context, list, domain string) Result {
	l := m.lists.byName[list]
	if l == nil {
		return Result{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	q := question{l, domain}
	if r, ok := m.known[q]; ok {
		return r
	}
	r := m.result(ctx, l, domain)
	r.Defer = r.Outcome == Unknown && l.Defer && r.Cause.Temporary()
	if r.Cause != CauseStopped { // another call may have a context that lasts
		if m.known == nil {
			m.known = map[question]Result{}
		}
		m.known[q] = r
		l.state.counts.add(r)
	}
	return r
}

// Skipped counts a sender that a list is not asked about, since its address may be a wrong guess.
func (m *Message) Skipped(list string) {
	if l := m.lists.byName[list]; l != nil {
		l.state.counts.add(unknown(CauseGuess))
	}
}

// result implements Result, without what is the same for all results.
func (m *Message) result(ctx context.Context, l *list, domain string) Result {
	if !isDomain(domain) {
		return unknown(CauseName)
	}
	m.ask(l, []string{domain})
	w := wait{m: m, ctx: ctx, left: l.Timeout - m.waited}
	defer w.end()
	if cause := w.until(l.state.first); cause != "" {
		return unknown(cause)
	}
	if l.state.blocked() == CauseOff {
		return unknown(CauseOff) // what it has answered before cannot be relied on
	}
	var buf [8]string
	names := append(buf[:0], domain)
	if !l.Exact {
		names = appendNames(buf[:0], domain)
	}
	r := Result{}
	for _, name := range names {
		got := m.resultOf(l, name, &w)
		switch {
		case got.Outcome == Listed:
			return got
		case got.Outcome == Unknown && (r.Outcome == NotListed || !r.Cause.Temporary()):
			r = got
		}
	}
	return r
}

// resultOf returns what a list says of one name.
func (m *Message) resultOf(l *list, name string, w *wait) Result {
	if len(name)+1+len(l.Zone) > maxName {
		return unknown(CauseName)
	}
	e := m.find(question{l, name})
	if e == nil {
		if cause := l.state.blocked(); cause != "" {
			return unknown(cause)
		}
		return unknown(CauseLimit)
	}
	if cause := w.until(e.done); cause != "" {
		return unknown(cause)
	}
	if e.answer.cause != "" {
		return unknown(e.answer.cause)
	}
	codes, unusable := counting(l.rules, e.answer.addrs)
	if unusable != "" {
		return unknown(unusable)
	}
	if len(codes) == 0 {
		return Result{}
	}
	r := Result{Outcome: Listed, Name: name, Codes: codes}
	if text := m.cache.findText(l, name); w.until(text.done) == "" {
		r.Reason = text.answer.text
	}
	if checked := l.state.confirm(); checked != nil {
		w.until(checked)
	}
	if l.state.blocked() == CauseOff {
		return unknown(CauseOff)
	}
	return r
}

func unknown(c Cause) Result { return Result{Outcome: Unknown, Cause: c} }

// wait is the time that a message waits in one call of Result.
type wait struct {
	m     *Message
	ctx   context.Context
	left  time.Duration
	begun time.Time   // zero until there is something to wait for
	timer *time.Timer // nil until then
}

// until waits until done is closed. It returns why that did not happen.
func (w *wait) until(done <-chan struct{}) Cause {
	select {
	case <-done:
		return ""
	default:
	}
	if w.timer == nil {
		w.begun = time.Now()
		w.timer = time.NewTimer(w.left)
	}
	select {
	case <-done:
		return ""
	case <-w.ctx.Done():
		return CauseStopped
	case <-w.timer.C:
		w.timer.Reset(0) // for the next call
		return CauseTimeout
	}
}

// end adds the time to that of the message.
func (w *wait) end() {
	if w.timer != nil {
		w.timer.Stop()
		w.m.waited += time.Since(w.begun)
	}
}
