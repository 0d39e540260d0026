package console

import "sync"

// Live views and other requests at once. Requests are bounded for the gate's memory: a page of the
// history may have some MiB.
const (
	streamsEach  = 4
	streamsAll   = 64
	requestsEach = 16
	requestsAll  = 32
)

// places bounds what may be under way at once, for an account and in all.
type places struct {
	each, all int

	mu    sync.Mutex
	taken map[string]int // by account
	sum   int
}

// enter takes a place. It reports false if all are taken; else leave frees the place.
func (p *places) enter(name string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum >= p.all || p.taken[name] >= p.each {
		return nil, false
	}
	if p.taken == nil {
		p.taken = map[string]int{}
	}
	p.taken[name]++
	p.sum++
	return func() { p.leave(name) }, true
}

func (p *places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum--
	if p.taken[name]--; p.taken[name] == 0 {
		delete(p.taken, name)
	}
}
