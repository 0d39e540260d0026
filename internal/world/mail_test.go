package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestTogether sends each message to its recipients together, and to each of them alone, through the
// real proxy, milter and policy service, over connections in memory. What becomes of the first must
// follow from the second: every recipient gets the reply that it gets alone, and compose has the
// rest. What a recipient gets alone must be the model's, or, if the lists cannot be asked, a refusal
// for now.
//
// The recipients have lists, entries and policies of their own; some wait for a signature; the lists
// of some cannot be asked. Clients pipeline, send chunks, give messages up, and send several in a
// connection; lists and policies change while a message comes, and those at MAIL count; the next hop
// refuses a recipient, or what comes later.
//
// What is watched besides: each command gets one reply, which is well-formed; a refusal means no copy
// at the next hop, and 250 one with the text that was sent; no transaction is left open there.
func TestTogether(t *testing.T) {
	playMail(t, 1500, drawTogether, (*mailWorld).together)
}

// TestModel sends messages to the proxy, and compares what becomes of them with the model.
func TestModel(t *testing.T) {
	playMail(t, 1500, drawModel, func(w *mailWorld) string {
		w.gate.apply(w.gate.proxy, w.atMAIL)
		o := w.gate.proxy.run(w.m, w.handling)
		want := w.judging.decide(w.m)
		w.tell("  %s", want.short())
		return o.differs(want, w.m)
	})
}

// TestVerdicts compares the verdicts on single senders with the model: what the lists say now, and
// what they say if the pending proofs hold. It finds where a difference of TestModel is.
func TestVerdicts(t *testing.T) {
	playMail(t, 400, drawModel, func(w *mailWorld) string {
		w.gate.apply(w.gate.proxy, w.atMAIL)
		w.gate.proofs.about(w.m, nil)
		for _, rcpt := range w.m.rcpts {
			if diff := w.judging.judged(w.gate.checker(w.judging), w.m, rcpt); diff != "" {
				return "for " + rcpt + ": " + diff
			}
		}
		return ""
	})
}

// A mailWorld is one gate, whose configuration is the sum of the moves before, and a client with one
// message after the other.
type mailWorld struct {
	*world
	gate *mailGate
	now  *configuration
	last prepared // of a configuration
	of   *configuration

	m        *message // nil between messages
	handling *handling
	judging  *configuration // that at MAIL
	atMAIL   prepared
}

// playMail plays worlds. Send sends a message, and says what must not be.
func playMail(t *testing.T, few int, draw func(*generator) []move, send func(*mailWorld) string) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // much is made, and little kept
	g, worlds := newMailGate(), 0
	defer func() { g.close() }()
	run(t, &part{
		few:  few,
		draw: func(r *rand.Rand) []move { return draw(&generator{Rand: r}) },
		play: func(w *world, moves []move) (err error) {
			if worlds++; worlds%500 == 0 { // the policy service remembers messages
				g.close()
				g = newMailGate()
			}
			m := &mailWorld{world: w, gate: g, now: &configuration{}}
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return m.play(moves, send)
		},
	})
}

func (w *mailWorld) play(moves []move, send func(*mailWorld) string) (err error) {
	w.gate.hop.forget()
	for _, d := range w.gate.doors {
		d.open()
		defer func() {
			if faults := d.close(); faults != nil && err == nil {
				err = fmt.Errorf("%s, at the end: %s", d, strings.Join(faults, "; "))
			}
		}()
	}
	for _, m := range moves {
		w.tell("%v", m)
		m.(*mailMove).do(w)
		if m != endOfMessage || w.m == nil || w.m.rcpts == nil {
			continue
		}
		if diff := send(w); diff != "" {
			return errors.New(diff)
		}
		w.m = nil
	}
	return nil
}

// A mailMove is what a client does, or who keeps the lists.
type mailMove struct {
	text string
	do   func(w *mailWorld)
}

func (m *mailMove) String() string { return m.text }

// will makes a move.
func will(do func(w *mailWorld), format string, args ...any) move {
	return &mailMove{fmt.Sprintf(format, args...), do}
}

// prepare prepares the present configuration.
func (w *mailWorld) prepare() prepared {
	if w.of != w.now {
		w.last, w.of = w.gate.prepare(w.now), w.now
	}
	return w.last
}

// endOfMessage is its end.
var endOfMessage = will(func(*mailWorld) {}, "the message ends")

// changes is a move that changes the configuration. What comes while a message is sent counts for the
// next one.
func changes(do func(*configuration), format string, args ...any) move {
	return will(func(w *mailWorld) {
		another := *w.now
		another.lists, another.rules, another.faults = slices.Clone(w.now.lists), slices.Clip(w.now.rules), slices.Clip(w.now.faults)
		do(&another)
		w.now = &another
		if w.m != nil {
			after := len(w.m.rcpts)
			if w.m.fields != nil {
				after = inContent
			}
			w.handling.edits = append(w.handling.edits, edit{after, w.prepare()})
		}
	}, format, args...)
}

// inMessage is a move that counts while there is a message.
func inMessage(do func(m *message, h *handling), format string, args ...any) move {
	return will(func(w *mailWorld) {
		if w.m != nil {
			do(w.m, w.handling)
		}
	}, format, args...)
}

// onList changes a list, if there is one with that name.
func (c *configuration) onList(name string, do func(*list)) {
	if i := slices.IndexFunc(c.lists, func(l list) bool { return l.name == name }); i >= 0 {
		do(&c.lists[i])
		c.lists[i].known = nil
	}
}

func addsLine(l, line string) move {
	return changes(func(c *configuration) {
		c.onList(l, func(l *list) { l.lines = append(slices.Clip(l.lines), line) })
	}, "list %s gets the line %q", l, line)
}

func losesLine(l, line string) move {
	return changes(func(c *configuration) {
		c.onList(l, func(l *list) {
			l.lines = slices.DeleteFunc(slices.Clone(l.lines), func(s string) bool { return s == line })
		})
	}, "list %s loses the line %q", l, line)
}

// keys are what is on or off in a configuration.
var keys = []struct {
	is   func(*configuration) *bool
	text string
}{
	{func(c *configuration) *bool { return &c.exemptClient }, "the client is exempt"},
	{func(c *configuration) *bool { return &c.monitor }, `mode = "monitor"`},
	{func(c *configuration) *bool { return &c.srs }, "srs is unwrapped"},
	{func(c *configuration) *bool { return &c.batv }, "batv is unwrapped"},
	{func(c *configuration) *bool { return &c.checkBounces }, "check_bounces = true"},
	{func(c *configuration) *bool { return &c.tagMixed }, `mixed_headers = "tag"`},
}

// moves returns the moves that make a configuration.
func (c *configuration) moves() (all []move) {
	for _, key := range keys {
		if *key.is(c) {
			all = append(all, changes(func(c *configuration) { *key.is(c) = true }, "%s", key.text))
		}
	}
	if c.exemptRecipients != nil {
		all = append(all, changes(func(to *configuration) { to.exemptRecipients = c.exemptRecipients }, "exempt_recipients = %q", c.exemptRecipients))
	}
	for _, l := range c.lists {
		empty := l
		empty.lines = nil
		all = append(all, changes(func(c *configuration) { c.lists = append(c.lists, empty) }, "%v", &empty))
		for _, line := range l.lines {
			all = append(all, addsLine(l.name, line))
		}
	}
	for _, r := range c.rules {
		all = append(all, addsRule(r))
	}
	for _, f := range c.faults {
		all = append(all, changes(func(c *configuration) { c.faults = append(c.faults, f) }, "%v", f))
	}
	return all
}

func addsRule(r rule) move {
	return changes(func(c *configuration) { c.rules = append(c.rules, r) }, "%v", r)
}

// moves returns the moves of a message.
func (m *message) moves() (all []move) {
	all = append(all, will(func(w *mailWorld) {
		w.m, w.handling = &message{from: m.from, spf: m.spf, trueClient: m.trueClient, refused: map[string]int{}}, &handling{}
		w.judging, w.atMAIL = w.now, w.prepare()
	}, "MAIL FROM:<%s>; SPF %v, of the client: %v", m.from.written, m.spf, m.trueClient))
	for _, r := range m.rcpts {
		all = append(all, inMessage(func(m *message, _ *handling) { m.rcpts = append(m.rcpts, r) }, "RCPT TO:<%s>", r))
	}
	for _, f := range m.fields {
		all = append(all, inMessage(func(m *message, _ *handling) { m.fields = append(m.fields, f) }, "%v", f))
	}
	for _, s := range m.signatures {
		all = append(all, inMessage(func(m *message, _ *handling) { m.signatures = append(m.signatures, s) }, "the signature of %s %v", s.domain, s.fact))
	}
	return append(all, endOfMessage)
}
