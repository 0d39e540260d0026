package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generator makes random configurations and messages from few names, so that they meet.
type generator struct {
	*rand.Rand
	pool []address // the senders that the lists and the messages of a world are about
}

func (g *generator) one(choices ...string) string { return choices[g.IntN(len(choices))] }

// chance reports true in one of n cases.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func (g *generator) domain() string {
	if g.chance(4) {
		return g.one("p.co.uk", "q.co.uk", "a.p.co.uk", "p.github.io", "q.github.io")
	}
	return g.one("p.example", "p.example", "q.p.example", "r.q.p.example", "s.example")
}

func (g *generator) local() string { return g.one("a", "a", "b", "a+x", "b+y", "a+x+z") }

// address returns a sender with up to six others wrapped into it.
func (g *generator) address() address {
	text := g.local() + "@" + g.domain()
	a := address{text, []string{text}, nil}
	for g.chance(2) && len(a.schemes) < 6 {
		if !g.wrap(&a) {
			break
		}
	}
	if g.chance(12) { // an address without a sender in it, whatever it looks like
		text = g.one("bounces+srs=abc=de", "a+caf_=b=p.example", "srs0=abc=p.example=a", "a=p.example", "prvs=1234=a") + "@" + g.domain()
		a = address{text, []string{text}, nil}
	}
	if g.chance(3) {
		a.written = upper(g, a.written)
	}
	return a
}

// upper writes some letters as capitals.
func upper(g *generator, s string) string {
	all := g.chance(2)
	return strings.Map(func(r rune) rune {
		if (all || g.chance(2)) && 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// wrap wraps an address once more, as a forwarder or a sender of tagged addresses does. It
// reports false if the local part would be too long.
func (g *generator) wrap(a *address) bool {
	inner := a.chain[0]
	local, domain, _ := strings.Cut(inner, "@")
	forwarder := g.domain()
	hash := g.one("a", "xy1z", "h4sh", "0123456789")
	which := srs
	var outer string
	switch rest, isSRS0 := strings.CutPrefix(local, "srs0"); {
	case isSRS0 && g.chance(2):
		outer = "srs1" + g.one("=", "+", "-") + hash + "=" + domain + "=" + rest + "@" + forwarder
	case g.chance(4) && !strings.Contains(local, "+srs="): // which could be the outer one
		which = batv
		outer = "prvs=" + g.one("123456789", "0123abcdef") + "=" + inner
	case g.chance(4) && !strings.Contains(local, "+srs="):
		which = batv
		outer = "btv1==" + g.one("0a1b2c3d", "123456789abcdef") + "==" + inner
	case g.chance(4):
		outer = g.one("a", "owner") + "+srs=" + hash + "=tt=" + domain + "=" + local + "@" + forwarder
	default:
		outer = "srs0" + g.one("=", "+", "-") + hash + "=tt=" + domain + "=" + local + "@" + forwarder
	}
	if strings.IndexByte(outer, '@') > 64 { // RFC 5321, section 4.5.3.1.1
		return false
	}
	a.written = outer
	a.chain = append([]string{outer}, a.chain...)
	a.schemes = append([]scheme{which}, a.schemes...)
	return true
}

// sender returns one of the pool, seldom another one.
func (g *generator) sender() address {
	if g.chance(8) {
		return g.address()
	}
	return g.pool[g.IntN(len(g.pool))]
}

func (g *generator) rcpt() string {
	return g.one("ann@m.example", "bob@m.example", "ann+t@m.example", "cy@n.m.example", "ann@o.example", "cy@o.example",
		"dan@m.example", "postmaster@m.example", "abuse@o.example")
}

// entryOf returns an entry for an address or for what stands around it.
func (g *generator) entryOf(address string) string {
	local, domain, _ := strings.Cut(address, "@")
	user, _, _ := strings.Cut(local, "+")
	_, parent, _ := strings.Cut(domain, ".")
	switch g.IntN(12) {
	case 0, 1, 2:
		return address
	case 3:
		return user + "@" + domain
	case 4, 5:
		return g.one("@", "*@") + domain
	case 6:
		return "." + domain
	case 7:
		return g.one(local, user) + "@"
	case 8:
		return "*." + domain
	case 9:
		if strings.Contains(parent, ".") && parent != "co.uk" {
			return g.one("", "*.") + parent
		}
	}
	return domain
}

func (g *generator) senderEntry() string {
	if g.chance(15) {
		return "<>"
	}
	chain := g.sender().chain
	return g.entryOf(chain[g.IntN(len(chain))])
}

func (g *generator) rcptEntry() string { return g.entryOf(g.rcpt()) }

func (g *generator) list(i int) list {
	l := list{name: fmt.Sprintf("l%d", i), allow: g.chance(3), exact: g.chance(5), perRecipient: g.chance(4)}
	stages := 1 + g.IntN(5) // both more often than one
	l.envelope, l.header = stages != 1, stages != 2
	if l.allow {
		l.override = g.chance(3)
		proofs := g.IntN(5)
		l.spf, l.dkim = proofs&1 != 0, proofs&2 != 0
	} else {
		l.action = [...]action{reject, reject, reject, deferred, discard, tag, monitor}[g.IntN(7)]
		if g.chance(4) {
			l.headerAction = tag + action(g.IntN(5))
		}
	}
	for range 1 + g.IntN(5) {
		text := g.senderEntry()
		if !l.allow && g.chance(5) {
			text = "!" + text
		}
		if l.perRecipient {
			text = g.rcptEntry() + " " + text
		}
		l.lines = append(l.lines, text)
	}
	return l
}

func (g *generator) rule(lists []list) rule {
	var r rule
	for range 1 + g.IntN(2) {
		entry := g.rcptEntry()
		if len(r.match) > 0 && g.chance(4) {
			entry = "!" + entry
		}
		r.match = append(r.match, entry)
	}
	if r.exempt = g.chance(4); r.exempt {
		return r
	}
	if g.chance(2) {
		for _, l := range lists {
			if g.chance(2) {
				r.lists = append(r.lists, l.name)
			}
		}
	}
	switch g.IntN(6) {
	case 0, 1:
		r.maxAction = tag
	case 2:
		r.maxAction = [...]action{deferred, discard}[g.IntN(2)]
	default:
		r.monitor = r.lists == nil || g.chance(4)
	}
	return r
}

func (g *generator) world() *world {
	g.pool = nil
	for range 5 {
		g.pool = append(g.pool, g.address())
	}
	w := &world{
		exemptClient: g.chance(50), monitor: g.chance(40), checkBounces: g.chance(3),
		srs: !g.chance(6), batv: !g.chance(6), tagMixed: g.chance(3),
	}
	for i := range 1 + g.IntN(5) {
		w.lists = append(w.lists, g.list(i))
	}
	for range g.IntN(4) {
		w.rules = append(w.rules, g.rule(w.lists))
	}
	if g.chance(2) {
		w.exemptRecipients = []string{g.one("abuse@", "@o.example", "cy@n.m.example")}
	}
	return w
}

func (g *generator) message() *message {
	m := &message{trueClient: !g.chance(5), spf: [...]fact{holds, holds, fails, temporary}[g.IntN(4)]}
	if !g.chance(15) {
		m.from = g.sender()
	} else {
		m.from = address{"", []string{""}, nil}
	}
	for range 1 + g.IntN(3) {
		if r := g.rcpt(); !slices.Contains(m.rcpts, r) {
			m.rcpts = append(m.rcpts, r)
		}
	}
	names := []string{"From"}
	switch g.IntN(12) {
	case 0:
		names = append(names, "From")
	case 1:
		names = nil
	}
	if g.chance(4) {
		names = append(names, g.one("Sender", "Reply-To"))
	}
	for _, name := range names {
		f := field{name: name, addresses: []address{g.sender()}}
		if g.chance(5) {
			f.addresses = append(f.addresses, g.sender())
		}
		m.fields = append(m.fields, f)
	}
	n := g.IntN(3)
	if g.chance(15) {
		n = 7
	}
	for range n {
		domain := g.domain()
		if !g.chance(3) { // of a sender of the message
			a := m.from
			if len(m.fields) > 0 && g.chance(2) {
				a = m.fields[g.IntN(len(m.fields))].addresses[0]
			}
			if _, subject, ok := strings.Cut(a.chain[g.IntN(len(a.chain))], "@"); ok {
				domain = subject
			}
		}
		m.signatures = append(m.signatures, signature{domain, [...]fact{holds, holds, fails, temporary}[g.IntN(4)]})
	}
	return m
}
