package dnslist

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/recent"
	"spamgate/internal/resolver"
)

// maxCached bounds the cached answers. A usual one takes 320 bytes, the longest 1.1 KB
// (BenchmarkCacheMemory): 6.5 MB and 23 MB in all.
const maxCached = 20_000

// cache has the answers of all lists for their TTL, and the questions under way. Two
// lists of the same zone share them: they differ in what counts.
type cache struct {
	resolver *resolver.Resolver
	ctx      context.Context // of the questions
	running  sync.WaitGroup

	mu      sync.Mutex
	entries *recent.Map[key, *entry]
}

// key is a question: the addresses (A) or the text (TXT) of name.zone.
type key struct {
	name, zone string
	kind       uint16
	epoch      uint32 // see Client.epochs
}

func (l *list) key(name string, kind uint16) key {
	return key{name, l.Zone, kind, l.state.epoch.Load()}
}

// entry is a question and, once done is closed, its answer.
type entry struct {
	done   chan struct{}
	answer answer
	until  time.Time // when it expires; zero during the question. Guarded by cache.mu
}

// isDone reports whether the answer is there.
func (e *entry) isDone() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// get returns the entry of a question, nil if there is none or it has expired. The caller
// must hold mu.
func (c *cache) get(k key) *entry {
	e, ok := c.entries.Get(k)
	if ok && (e.until.IsZero() || time.Now().Before(e.until)) {
		return e
	}
	return nil
}

// find returns the entry of a question. If there is none it begins the question, and
// calls then with the answer before others see it. Began reports whether it did.
func (c *cache) find(k key, timeout time.Duration, then func(answer)) (e *entry, began bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.get(k); e != nil {
		return e, false
	}
	e = &entry{done: make(chan struct{})}
	if c.ctx.Err() != nil {
		e.answer.cause = CauseStopped
		close(e.done)
		return e, false
	}
	k.name = strings.Clone(k.name) // may be a part of a longer text
	c.entries.Put(k, e)
	c.running.Go(func() {
		a := c.ask(c.ctx, k.name+"."+k.zone, k.kind, timeout)
		then(a)
		e.answer = a
		c.mu.Lock()
		e.until = time.Now().Add(a.ttl)
		c.mu.Unlock()
		close(e.done)
	})
	return e, true
}

// ask asks a question. What panics because of an answer is a failure of that question, and
// not of the gate.
func (c *cache) ask(ctx context.Context, name string, kind uint16, timeout time.Duration) (a answer) {
	defer func() {
		if recover() != nil {
			a = failed(CauseNetwork)
		}
	}()
	m, cause := c.resolver.Ask(ctx, name, kind, timeout)
	if cause != "" {
		return failed(Cause(cause))
	}
	return readAnswer(m, name, kind)
}

// findAddrs returns the entry of the question whether a list has a name. If the list is
// not asked at the moment, it returns an answer that is cached, or nil.
func (c *cache) findAddrs(l *list, name string) *entry {
	if l.state.blocked() != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if e := c.get(l.key(name, dns.TypeA)); e != nil && e.isDone() {
			l.state.counts.asked(false)
			return e
		}
		return nil
	}
	e, began := c.find(l.key(name, dns.TypeA), l.Timeout, func(a answer) {
		codes, cause := counting(l.rules, a.addrs)
		if a.cause != "" {
			cause = a.cause
		}
		l.state.note(cause)
		if len(codes) > 0 {
			c.findText(l, name) // as soon as it is known to be needed
			l.state.confirm()   // the same
		}
	})
	l.state.counts.asked(began)
	return e
}

// findText returns the entry of the question why a list has a name.
func (c *cache) findText(l *list, name string) *entry {
	e, began := c.find(l.key(name, dns.TypeTXT), l.Timeout, func(answer) {})
	if began {
		l.state.counts.questions.Add(1)
	}
	return e
}
