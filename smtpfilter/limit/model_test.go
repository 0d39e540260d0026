package limit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// plain is the plain twin of Limiter. It remembers when everything happened, and asks for
// every time that began with one of these events whether a burst and the rate allow
// another.
type plain struct {
	config  Config
	current int64
	events  map[string][]int64 // by prefix or login, and rate
	open    map[string]int     // by prefix
	total   int
}

const minute = int64(time.Minute)

type plainScope struct {
	name   string
	whose  string // a prefix, or a login
	limits Limits
}

func (p *plain) scopes(a netip.Addr) []plainScope {
	a = a.Unmap()
	bits := [2]int{64, 48}
	if a.Is4() {
		bits = [2]int{32, 24}
	}
	client, _ := a.Prefix(bits[0])
	network, _ := a.Prefix(bits[1])
	return []plainScope{{Client, client.String(), p.config.Client}, {Network, network.String(), p.config.Network}}
}

// scopesOf is scopes for a client with a login, "" for none.
func (p *plain) scopesOf(a netip.Addr, login string) (all []plainScope) {
	if a.IsValid() {
		all = p.scopes(a)
	}
	if login != "" {
		l := p.config.Login
		all = append(all, plainScope{Login, "login " + login, Limits{MessagesPerMinute: l.MessagesPerMinute, RecipientsPerMinute: l.RecipientsPerMinute}})
	}
	return all
}

func (p *plain) exempt(a netip.Addr) bool {
	for _, e := range p.config.Exempt {
		if e.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}

func eventsKey(s plainScope, rate string) string { return fmt.Sprint(s.whose, rate) }

func limitOf(l Limits, rate string) int {
	return map[string]int{
		ConnectionsPerMinute: l.ConnectionsPerMinute,
		MessagesPerMinute:    l.MessagesPerMinute,
		RecipientsPerMinute:  l.RecipientsPerMinute,
		ErrorsPerMinute:      l.ErrorsPerMinute,
	}[rate]
}

// wait returns how long it takes until another event is allowed: so that any time t with n
// events, this one included, has n <= limit + limit*t/minute.
func wait(events []int64, current int64, limit int) (longest int64) {
	for i, first := range events {
		n := int64(len(events) - i + 1)
		enough := (n - int64(limit)) * minute / int64(limit) // the tests' limits divide the minute
		longest = max(longest, enough-(current-first))
	}
	return longest
}

func (p *plain) check(scopes []plainScope, rate string) Result {
	for _, s := range scopes {
		n := limitOf(s.limits, rate)
		if n == 0 {
			continue
		}
		if w := wait(p.events[eventsKey(s, rate)], p.current, n); w > 0 {
			return Result{rate, s.name, n, time.Duration(w)}
		}
	}
	return Result{}
}

func (p *plain) use(scopes []plainScope, rate string) {
	for _, s := range scopes {
		k := eventsKey(s, rate)
		p.events[k] = append(p.events[k], p.current)
	}
}

func (p *plain) take(a netip.Addr, login, rate string) Result {
	if p.exempt(a) {
		return Result{}
	}
	scopes := p.scopesOf(a, login)
	v := p.check(scopes, rate)
	if v.Allowed() {
		p.use(scopes, rate)
	}
	return v
}

func (p *plain) connect(a netip.Addr) Result {
	if !p.exempt(a) {
		for _, s := range p.scopes(a) {
			if n := s.limits.Connections; n > 0 && p.counts(a) && p.open[s.whose] >= n {
				return Result{Connections, s.name, n, 0}
			}
		}
		for _, rate := range []string{ConnectionsPerMinute, ErrorsPerMinute} {
			if v := p.check(p.scopes(a), rate); !v.Allowed() {
				return v
			}
		}
		if n := p.config.MaxConnections; n > 0 && p.total >= n {
			return Result{Connections, All, n, 0}
		}
		p.use(p.scopes(a), ConnectionsPerMinute)
		p.count(a, 1)
	}
	p.total++
	return Result{}
}

// counts reports whether the connections of a client are counted.
func (p *plain) counts(a netip.Addr) bool {
	return !slices.ContainsFunc(p.config.Uncounted, func(u netip.Prefix) bool { return u.Contains(a.Unmap()) })
}

func (p *plain) count(a netip.Addr, by int) {
	if !p.counts(a) {
		return
	}
	for _, s := range p.scopes(a) {
		p.open[s.whose] += by
	}
}

func (p *plain) release(a netip.Addr) {
	p.total--
	if !p.exempt(a) {
		p.count(a, -1)
	}
}

func randomLimits(r *rand.Rand) Limits {
	pick := func() int { return []int{0, 1, 2, 3, 5, 6, 10}[r.IntN(7)] }
	return Limits{pick(), pick(), pick(), pick(), pick()}
}

func randomLoginLimits(r *rand.Rand) LoginLimits {
	l := randomLimits(r)
	return LoginLimits{l.MessagesPerMinute, l.RecipientsPerMinute}
}

// randomLogin returns a login, often none.
func randomLogin(r *rand.Rand) (string, LoginID) {
	name := []string{"", "", "a", "b", "192.0.2.1"}[r.IntN(5)]
	if name == "" {
		return "", 0
	}
	return name, LoginOf(name)
}

func randomAddr(r *rand.Rand) netip.Addr {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	host := 1 + r.IntN(3)
	switch r.IntN(4) {
	case 0:
		return addr(fmt.Sprintf("%s:%x:%x::%x", "2001:db8", r.IntN(2), r.IntN(2), host))
	case 1:
		return addr(fmt.Sprintf("::ffff:192.0.2.%d", host))
	}
	return addr(fmt.Sprintf("%s.%d", pick("192.0.2", "198.51.100"), host))
}

// randomStep returns a short time mostly, and often a whole interval of a limit.
func randomStep(r *rand.Rand) time.Duration {
	switch r.IntN(30) {
	case 0:
		return 2 * time.Minute
	case 1:
		return time.Minute / []time.Duration{2, 3, 5, 6, 10}[r.IntN(5)]
	case 2, 3, 4:
		return time.Duration(r.IntN(2000)) * time.Millisecond
	}
	return 0
}

// TestAgainstPlain compares the Limiter with its plain twin for random events at random
// times.
func TestAgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	reached := map[[2]string]int{}
	for range 300 {
		clock := newClock()
		config := Config{Client: randomLimits(r), Network: randomLimits(r), Login: randomLoginLimits(r), MaxConnections: r.IntN(8), Now: clock.now}
		if r.IntN(3) == 0 {
			config.Exempt = []netip.Prefix{netip.MustParsePrefix("192.0.2.2/32")}
		}
		if r.IntN(3) == 0 {
			config.Uncounted = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/31"), netip.MustParsePrefix("2001:db8::/49")}
		}
		l := New(config)
		p := &plain{config: config, events: map[string][]int64{}, open: map[string]int{}}
		type connection struct {
			*Ticket
			addr netip.Addr
		}
		var open []connection
		for range 400 {
			step := randomStep(r)
			clock.advance(step)
			p.current += int64(step)
			a := randomAddr(r)
			var got, want Result
			switch r.IntN(6) {
			case 0:
				name, login := randomLogin(r)
				if name != "" && r.IntN(4) == 0 {
					a = netip.Addr{} // a proxy may not know the address
				}
				got, want = l.MessageOf(a, login), p.take(a, name, MessagesPerMinute)
			case 1:
				name, login := randomLogin(r)
				got, want = l.RecipientOf(a, login), p.take(a, name, RecipientsPerMinute)
			case 2:
				got, want = l.Error(a), p.take(a, "", ErrorsPerMinute)
			case 3, 4:
				var ticket *Ticket
				ticket, got = l.Connect(a)
				want = p.connect(a)
				if got.Allowed() {
					open = append(open, connection{ticket, a})
				}
			case 5:
				if len(open) == 0 {
					continue
				}
				i := r.IntN(len(open))
				open[i].Release()
				open[i].Release()
				p.release(open[i].addr)
				open = append(open[:i], open[i+1:]...)
			}
			if got != want {
				t.Fatalf("%v at %v: got %+v, want %+v, config %+v", a, time.Duration(p.current), got, want, config)
			}
			reached[[2]string{got.Limit, got.Scope}]++
		}
		l.size(t)
	}
	for _, kind := range Kinds() {
		if reached[[2]string{kind.Limit, kind.Scope}] == 0 {
			t.Errorf("never %s: the test tests less than it should", kind.Key())
		}
	}
}
