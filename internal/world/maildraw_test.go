package world

import (
	"fmt"
	"math/big"
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

func (g *generator) configuration() *configuration {
	g.pool = nil
	for range 5 {
		g.pool = append(g.pool, g.address())
	}
	w := &configuration{
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
	m := &message{trueClient: !g.chance(5), spf: [...]fact{holds, holds, fails, unanswered}[g.IntN(4)]}
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
		m.signatures = append(m.signatures, signature{domain, [...]fact{holds, holds, fails, unanswered}[g.IntN(4)]})
	}
	return m
}

// party returns a configuration and two to four recipients, some of whom want something of their own.
func (g *generator) party() (*configuration, []string) {
	rcpts := []string{"ann@m.example", "bob@m.example", "cy@n.m.example", "ann@o.example", "dan@m.example", "postmaster@m.example"}
	g.Shuffle(len(rcpts), func(i, j int) { rcpts[i], rcpts[j] = rcpts[j], rcpts[i] })
	rcpts = rcpts[:2+g.IntN(3)]
	g.pool = nil
	for _, a := range []string{"a@p.example", "b@s.example", "a@p.co.uk"} {
		g.pool = append(g.pool, address{a, []string{a}, nil})
	}
	w := &configuration{srs: true, batv: true, monitor: g.chance(20), checkBounces: g.chance(3), tagMixed: g.chance(2)}
	alike := 1 + g.IntN(4) // the more, the fewer recipients want something
	for i := range 2 + g.IntN(4) {
		w.lists = append(w.lists, g.partyList(i, alike, rcpts))
	}
	for _, r := range append(rcpts, "m.example") {
		if g.chance(1 + alike) {
			rule := g.rule(w.lists)
			rule.match = []string{r}
			w.rules = append(w.rules, rule)
		}
	}
	for g.chance(2) {
		f := outage{rcpt: rcpts[g.IntN(len(rcpts))], keys: g.chance(3), envelope: g.chance(3)}
		f.header = !f.envelope || g.chance(2)
		if !f.keys && g.chance(2) {
			f.sender = g.pool[g.IntN(len(g.pool))].written
			if g.chance(2) {
				f.rcpt = ""
			}
		}
		w.faults = append(w.faults, f)
	}
	return w, rcpts
}

// partyList returns a list of a party, which half of the time has entries for recipients.
func (g *generator) partyList(i, alike int, rcpts []string) list {
	l := list{name: fmt.Sprintf("l%d", i), perRecipient: g.chance(2), allow: g.chance(3)}
	stages := 1 + g.IntN(5)
	l.envelope, l.header = stages != 1, stages != 2
	if l.allow {
		l.override, l.dkim, l.spf = g.chance(2), !g.chance(3), g.chance(4)
	} else if l.action = g.action(); g.chance(2) {
		l.headerAction = g.action()
	}
	if !l.perRecipient {
		l.lines = []string{g.partyEntry(), g.partyEntry()}
		return l
	}
	l.lines = []string{"z@z.example z@z.example"}
	for _, r := range append(rcpts, "m.example") {
		if g.chance(alike) {
			l.lines = append(l.lines, r+" "+g.partyEntry())
		}
		if !l.allow && g.chance(5) {
			l.lines = append(l.lines, r+" !"+g.partyEntry())
		}
	}
	return l
}

// partyEntry returns an entry of a party.
func (g *generator) partyEntry() string {
	_, domain, _ := strings.Cut(g.pool[0].written, "@")
	name := g.pool[g.IntN(len(g.pool))].written
	return g.one(name, name, name, domain, domain)
}

// action returns an action of a block list.
func (g *generator) action() action {
	return [...]action{reject, reject, deferred, discard, discard, tag}[g.IntN(6)]
}

// drawModel draws a world of the plain model: any configuration, and messages that come plainly.
func drawModel(g *generator) []move {
	moves := g.configuration().moves()
	for range 8 {
		moves = append(moves, g.message().moves()...)
	}
	return moves
}

// drawTogether draws a world of recipients who want different things.
func drawTogether(g *generator) []move {
	c, rcpts := g.party()
	moves := c.moves()
	for range 1 + g.IntN(3) {
		m := g.message()
		g.Shuffle(len(rcpts), func(i, j int) { rcpts[i], rcpts[j] = rcpts[j], rcpts[i] })
		m.rcpts = slices.Clone(rcpts)
		message := m.moves()
		for g.chance(2) {
			message = slices.Insert(message, 1+g.IntN(len(message)-1), g.handling(rcpts))
		}
		for g.chance(3) {
			message = slices.Insert(message, 1+g.IntN(len(message)-1), g.edit(c, rcpts))
		}
		moves = append(moves, message...)
		if g.chance(4) {
			moves = append(moves, g.edit(c, rcpts))
		}
	}
	return moves
}

// handling returns a move that says how a message comes, and what happens to it.
func (g *generator) handling(rcpts []string) move {
	switch g.IntN(6) {
	case 0:
		return inMessage(func(_ *message, h *handling) { h.pipelined = true }, "the client pipelines")
	case 5:
		size := new(big.Int).Lsh(big.NewInt(1), uint([]int{10, 20, 25, 26, 31, 32, 62, 63, 64, 70}[g.IntN(10)]))
		size.Sub(size, big.NewInt(int64(g.IntN(2))))
		return inMessage(func(_ *message, h *handling) { h.size = size }, "before, the client announces %d bytes", size)
	case 1:
		n := 1 + g.IntN(200)
		return inMessage(func(_ *message, h *handling) { h.chunk = n }, "the client sends chunks of %d bytes", n)
	case 2:
		how := giveUp{g.one(cutOff, cutOff, reset, hello, anew, unended), g.IntN(5)}
		if how.how == cutOff {
			how.after = g.IntN(1000)
		}
		return inMessage(func(_ *message, h *handling) { h.giveUp = how }, "before, the client %s %d", how.how, how.after)
	case 3:
		t := []trouble{refusesData, breaksOff, interrupts, refusesEnd, defersEnd, lost, changesMind, changesMind, changesMind}[g.IntN(9)]
		return inMessage(func(_ *message, h *handling) { h.trouble = t }, "the next hop %s", t)
	}
	r, code := rcpts[g.IntN(len(rcpts))], []int{450, 550}[g.IntN(2)]
	return inMessage(func(m *message, _ *handling) { m.refused[r] = code }, "the next hop refuses <%s> with %d", r, code)
}

// edit returns a move that changes a configuration.
func (g *generator) edit(c *configuration, rcpts []string) move {
	l := c.lists[g.IntN(len(c.lists))]
	switch g.IntN(6) {
	case 0:
		key := keys[1+g.IntN(len(keys)-1)] // not the exempt client, whom no list concerns
		return changes(func(c *configuration) { *key.is(c) = !*key.is(c) }, "not as before: %s", key.text)
	case 1:
		return losesLine(l.name, l.lines[g.IntN(len(l.lines))])
	case 2:
		r := g.rule(c.lists)
		r.match = []string{rcpts[g.IntN(len(rcpts))]}
		return addsRule(r)
	}
	line := g.partyEntry()
	if l.perRecipient {
		line = rcpts[g.IntN(len(rcpts))] + " " + line
	}
	return addsLine(l.name, line)
}
