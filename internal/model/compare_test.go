package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestModel sends random messages through gates with random configurations, and compares what
// becomes of them with the model. SPAMGATE_MODEL_CASES is the number of messages; each
// configuration has a seed of its own, which a failure names.
func TestModel(t *testing.T) {
	n := cases(t)
	g := newGate(t)
	var seen tally
	for first := *seed; n > 0; first++ {
		gen := &generator{Rand: rand.New(rand.NewPCG(first, 0))}
		w := gen.world()
		g.apply(t, w)
		for range min(n, messagesPerWorld) {
			m := gen.message()
			want := w.decide(m)
			seen.add(&want)
			if diff := g.run(t, m).differs(want, m); diff != "" {
				w, m, diff = shrink(w, m, diff, func(w *world, m *message) string {
					g.apply(t, w)
					return g.run(t, m).differs(w.decide(m), m)
				})
				t.Fatalf("-model.seed=%d: %s\n%s\n%s\nthe model: %s", first, diff, w, m, w.decide(m).short())
			}
			n--
		}
	}
	t.Log(seen)
}

// tally counts outcomes, so that one sees what the generator reaches.
type tally map[string]int

func (t *tally) add(o *outcome) {
	if *t == nil {
		*t = tally{}
	}
	for _, r := range o.rcpts {
		(*t)[fmt.Sprintf("rcpt %d", r.code)]++
		if r.sender != "" {
			(*t)["rcpt by way of"]++
		}
	}
	switch {
	case o.message == nil:
	case o.refused():
		(*t)[fmt.Sprintf("%s %d", o.phase, o.message[0].code)]++
	case len(o.delivered) == 0:
		(*t)["discarded"]++
	case len(o.delivered) < len(o.rcpts):
		(*t)["delivered to some"]++
	case o.phase == atBody:
		(*t)["delivered by proof"]++
	default:
		(*t)["delivered to all"]++
	}
	if len(o.tags) > 0 {
		(*t)["tagged"]++
	}
}

func (t tally) String() string {
	var parts []string
	for what, n := range t {
		parts = append(parts, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// shrink removes what it can from a configuration and a message as long as compare finds a
// difference.
func shrink(w *world, m *message, diff string, compare func(*world, *message) string) (*world, *message, string) {
	for again := true; again; {
		again = false
		for _, smaller := range simpler(w, m) {
			sw, sm := smaller.w, smaller.m
			if d := compare(&sw, &sm); d != "" {
				w, m, diff, again = &sw, &sm, d, true
				break
			}
		}
	}
	return w, m, diff
}

// both is a configuration and a message.
type both struct {
	w world
	m message
}

// simpler returns configurations and messages with one thing less.
func simpler(w *world, m *message) (all []both) {
	with := func(change func(*both)) {
		b := both{*w, *m}
		b.w.lists, b.w.rules = slices.Clone(w.lists), slices.Clone(w.rules)
		b.m.fields = slices.Clone(m.fields)
		change(&b)
		all = append(all, b)
	}
	for i := range w.lists {
		name := w.lists[i].name
		used := slices.ContainsFunc(w.rules, func(r rule) bool { return slices.Contains(r.lists, name) })
		if !used {
			with(func(b *both) { b.w.lists = without(w.lists, i) })
		}
		l := w.lists[i]
		for j := range l.lines {
			if len(l.lines) > 1 {
				with(func(b *both) { b.w.lists[i].lines = without(l.lines, j) })
			}
		}
		for _, on := range []func(*list) *bool{
			func(l *list) *bool { return &l.override }, func(l *list) *bool { return &l.spf },
			func(l *list) *bool { return &l.dkim }, func(l *list) *bool { return &l.exact },
		} {
			if *on(&l) {
				with(func(b *both) { *on(&b.w.lists[i]) = false })
			}
		}
		if l.headerAction != accept {
			with(func(b *both) { b.w.lists[i].headerAction = accept })
		}
	}
	for i, r := range w.rules {
		with(func(b *both) { b.w.rules = without(w.rules, i) })
		if len(r.match) > 1 {
			with(func(b *both) { b.w.rules[i].match = r.match[:1] })
		}
	}
	for _, on := range []func(*world) *bool{
		func(w *world) *bool { return &w.monitor }, func(w *world) *bool { return &w.exemptClient },
		func(w *world) *bool { return &w.srs }, func(w *world) *bool { return &w.batv },
		func(w *world) *bool { return &w.checkBounces }, func(w *world) *bool { return &w.tagMixed },
	} {
		if *on(w) {
			with(func(b *both) { *on(&b.w) = false })
		}
	}
	if w.exemptRecipients != nil {
		with(func(b *both) { b.w.exemptRecipients = nil })
	}
	for i := range w.faults {
		with(func(b *both) { b.w.faults = without(w.faults, i) })
	}
	for i := range m.rcpts {
		if len(m.rcpts) > 1 {
			with(func(b *both) { b.m.rcpts = without(m.rcpts, i) })
		}
	}
	for i, f := range m.fields {
		with(func(b *both) { b.m.fields = without(m.fields, i) })
		if len(f.addresses) > 1 {
			with(func(b *both) { b.m.fields[i].addresses = f.addresses[:1] })
			with(func(b *both) { b.m.fields[i].addresses = f.addresses[1:] })
		}
	}
	for i := range m.signatures {
		with(func(b *both) { b.m.signatures = without(m.signatures, i) })
	}
	if m.spf != fails {
		with(func(b *both) { b.m.spf = fails })
	}
	if m.from.written != strings.ToLower(m.from.written) {
		with(func(b *both) { b.m.from.written = strings.ToLower(m.from.written) })
	}
	if len(m.from.chain) > 1 {
		with(func(b *both) { b.m.from = address{m.from.chain[1], m.from.chain[1:], m.from.schemes[1:]} })
	}
	return all
}

// without returns a slice without one element.
func without[T any](s []T, i int) []T { return slices.Delete(slices.Clone(s), i, i+1) }
