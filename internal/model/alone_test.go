package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door"
	"spamgate/smtpfilter"
)

// faults are the questions that the lists cannot answer.
type faults struct {
	keysOf string // a recipient, whose entries cannot be looked for
	list   bool   // what is asked for recipients with entries of their own
	header bool   // only about senders in the header
}

// failing is a Checker whose lists cannot be asked everything.
type failing struct {
	judge.Checker
	faults
}

func (c failing) Judge() verdict.Judge { return failingJudge{c.Checker.Judge().(asked), c.faults} }

type asked interface {
	verdict.RecipientJudge
	verdict.ProofJudge
}

type failingJudge struct {
	asked
	faults
}

func (j failingJudge) Judge(ctx context.Context, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	if j.list && q.For.Keys != nil && (!j.header || q.Stage == verdict.Header) {
		return verdict.Verdict{Action: verdict.Defer}, fmt.Errorf("%w: a damaged list", verdict.ErrNoAnswer)
	}
	return j.asked.Judge(ctx, m, q)
}

func (j failingJudge) KeysOf(r verdict.Recipient) ([]string, error) {
	if j.keysOf != "" && r.Local+"@"+r.Domain == j.keysOf {
		return nil, fmt.Errorf("%w: a damaged list", verdict.ErrNoAnswer)
	}
	return j.asked.KeysOf(r)
}

// fate is what becomes of a message to some recipients.
type fate struct {
	rcpts  []reply
	end    reply    // to the message; zero if no recipient was accepted
	to     []string // who gets it
	tags   []string // the lists that mark it
	advise bool     // the client is told to send it to the others alone
}

// way is a protocol by which the gate is asked.
type way struct {
	name string
	send func(*testing.T, *message) fate
	end  bool // it sees the message, and not only its envelope
	late bool // it passes the message on while a decision is pending
}

// ways returns all protocols. The gate decides by settings that the test changes.
func ways(g *gate, settings func() smtpfilter.Settings) []way {
	newDoor := func(once bool) *door.Door {
		return door.New(door.Config{Protocol: "test", Name: "test", Once: once}, door.Settings{Checker: failing{}})
	}
	milter, policy := newDoor(false), newDoor(true)
	at := func(d *door.Door) *door.Door {
		s := settings()
		d.Apply(door.Settings{Checker: s.Checker, Policy: s.Policy, Signatures: s.Signatures})
		return d
	}
	return []way{
		{"proxy", g.fate, true, true},
		{"milter", func(t *testing.T, m *message) fate { return g.atMilter(t, at(milter), m) }, true, false},
		{"policy service", func(_ *testing.T, m *message) fate { return atPolicyService(g, at(policy), m) }, false, false},
	}
}

// fate sends a message through the proxy.
func (g *gate) fate(t *testing.T, m *message) fate {
	o := g.run(t, m)
	if len(o.faults) > 0 {
		t.Fatal(o.faults)
	}
	var f fate
	for _, r := range o.rcpts {
		f.rcpts = append(f.rcpts, short(r))
	}
	f.end, f.advise = short(o.message), strings.Contains(o.message.String(), "send it to the others alone")
	for _, d := range o.delivered {
		f.to = append(f.to, d.to...)
		for _, tag := range tagPart.FindAllSubmatch(d.text, -1) {
			f.tags = append(f.tags, string(tag[1]))
		}
	}
	return f
}

// begin begins a message at a door.
func begin(g *gate, d *door.Door, m *message) *door.Message {
	g.proofs.about(m, m.text())
	return d.Begin(context.Background(), door.Envelope{
		Client: netip.MustParseAddrPort("127.0.0.1:25"), Helo: "client.example", From: m.from.written,
	})
}

// atMilter sends a message through a door that sees it whole.
func (g *gate) atMilter(t *testing.T, d *door.Door, m *message) fate {
	msg := begin(g, d, m)
	var f fate
	for _, r := range m.rcpts {
		a := msg.Recipient(r)
		f.rcpts = append(f.rcpts, answerOf(&a))
		if a.Reply.IsZero() {
			f.to = append(f.to, r)
		}
	}
	if len(f.to) == 0 {
		msg.Abandoned()
		return f
	}
	section, body, _ := strings.Cut(string(m.text()), "\r\n\r\n")
	msg.Header([]byte(section+"\r\n"), nil)
	if w := msg.Content(); w != nil {
		_, err := w.Write([]byte(body))
		must(t, err)
	}
	a := msg.End()
	f.end, f.advise = answerOf(&a), strings.Contains(a.Reply.String(), "send it to the others alone")
	for _, tag := range a.Tags {
		for _, name := range tagPart.FindAllStringSubmatch(smtpfilter.TagField+": "+tag, -1) {
			f.tags = append(f.tags, name[1])
		}
	}
	if !a.Reply.IsZero() {
		f.to, f.tags = nil, nil
		return f
	}
	dropped, _ := msg.Discarded()
	f.to = slices.DeleteFunc(f.to, func(r string) bool { return slices.Contains(dropped, r) })
	msg.Passed(false)
	return f
}

// atPolicyService asks about the recipients of a message at a door that sees no more of it. What
// should be discarded is.
func atPolicyService(g *gate, d *door.Door, m *message) fate {
	msg := begin(g, d, m)
	var f fate
	for _, r := range m.rcpts {
		a := msg.Recipient(r)
		f.rcpts = append(f.rcpts, answerOf(&a))
		f.tags = append(f.tags, fmt.Sprint(r, " ", a.Action, " ", a.Tags, " ", a.DiscardTag))
	}
	return f
}

func answerOf(a *door.Answer) reply {
	if a.Reply.IsZero() {
		return reply{code: 250}
	}
	return short(a.Reply)
}

// TestEachAlone sends random messages to several recipients, to each of them alone and to all in
// any order, at the proxy and at doors. What becomes of a message to several is what becomes of
// it for each alone, put together by the rules of docs/recipients.md:
//
//   - the reply to a RCPT is the same;
//   - if some refuse the message and nobody would take it, or mixed_headers = "refuse", or the
//     lists could not be asked for one of them, it is refused for all in the strictest words of
//     those who refuse it;
//   - otherwise it is tagged for those, and delivered to all but those whose lists discard it.
//
// SPAMGATE_MODEL_CASES is the number of messages, -model.seed that of the first configuration.
func TestEachAlone(t *testing.T) {
	n := cases(t)
	g := newGate(t)
	var settings smtpfilter.Settings
	protocols := ways(g, func() smtpfilter.Settings { return settings })
	seen := map[string]int{}
	for first := *seed; n > 0; first++ {
		gen := &generator{Rand: rand.New(rand.NewPCG(first, 2))}
		w := gen.world()
		lists, _, err := store.Build(context.Background(), g.config(t, w))
		must(t, err)
		for range min(n, messagesPerWorld) {
			m, bad := gen.messageToSome(), gen.faults()
			settings = g.settingsOf(w, failing{g.checker(w, lists), bad})
			_, err := g.listener.Apply(settings)
			must(t, err)
			for _, p := range protocols {
				if diff := together(t, w, p, m, bad, seen); diff != "" {
					t.Fatalf("-model.seed=%d at the %s: %s\n%s\nfaults: %+v\n%s", first, p.name, diff, w, bad, m)
				}
			}
			n--
		}
	}
	t.Log(seen)
	for _, what := range []string{"refused for all, mixed", "discarded for some", "deferred, not asked", "tagged for some", "delivered to several"} {
		if !testing.Short() && seen[what] < 10 {
			t.Errorf("%s: only %d times; the generator does not reach it", what, seen[what])
		}
	}
}

// messageToSome returns a message to two to four recipients, often signed by one of its senders.
func (g *generator) messageToSome() *message {
	m := g.message()
	for len(m.rcpts) < 2 || len(m.rcpts) < 4 && g.chance(2) {
		if r := g.rcpt(); !slices.Contains(m.rcpts, r) {
			m.rcpts = append(m.rcpts, r)
		}
	}
	return m
}

func (g *generator) faults() (bad faults) {
	switch g.IntN(8) {
	case 0:
		bad.keysOf = g.rcpt()
	case 1:
		bad.list, bad.header = true, g.chance(2)
	}
	return bad
}

// together compares what becomes of a message to all its recipients, in two orders, with what
// becomes of it for each alone. It returns what is not as it should be.
func together(t *testing.T, w *world, p way, m *message, bad faults, seen map[string]int) string {
	alone := map[string]fate{}
	for _, r := range m.rcpts {
		one := *m
		one.rcpts = []string{r}
		alone[r] = p.send(t, &one)
		if r == bad.keysOf && !w.exemptClient && !w.recipient(r).exempt && alone[r].rcpts[0].code != 451 {
			return fmt.Sprintf("%s gets %+v though its lists cannot be asked", r, alone[r])
		}
	}
	reversed := slices.Clone(m.rcpts)
	slices.Reverse(reversed)
	for _, rcpts := range [][]string{m.rcpts, reversed} {
		all := *m
		all.rcpts = rcpts
		got := p.send(t, &all)
		if diff := composed(w, p, m, rcpts, alone, got, seen); diff != "" {
			return fmt.Sprintf("to %s: %s\nalone: %+v\ngot: %+v", rcpts, diff, alone, got)
		}
	}
	return ""
}

// composed returns what of a fate does not follow from the fates of the recipients alone.
func composed(w *world, p way, m *message, rcpts []string, alone map[string]fate, got fate, seen map[string]int) string {
	var refusing, taking, dropping []string
	var tags, policyTags []string
	notAsked := false
	for i, r := range rcpts {
		a := alone[r]
		if got.rcpts[i] != a.rcpts[0] {
			return fmt.Sprintf("the reply for %s is %s", r, got.rcpts[i])
		}
		policyTags = append(policyTags, a.tags...)
		switch {
		case a.end.code == 0: // refused at RCPT
		case a.end.code != 250:
			refusing = append(refusing, r)
			tags = append(tags, a.end.list)
			notAsked = notAsked || a.end == reply{code: 451}
		case len(a.to) == 0:
			dropping = append(dropping, r)
		default:
			taking = append(taking, r)
			tags = append(tags, a.tags...)
		}
	}
	if !p.end {
		if !slices.Equal(got.tags, policyTags) {
			return "another answer for one of them"
		}
		return ""
	}
	if len(refusing)+len(taking)+len(dropping) == 0 {
		return ""
	}
	proofs := len(m.signatures) > 0 && slices.ContainsFunc(w.lists, func(l list) bool { return l.dkim })
	late := p.late && proofs
	mixed := len(taking) > 0
	refused := len(refusing) > 0 && (!mixed || !w.tagMixed || notAsked)
	if got.end.code != 250 {
		// What is passed on before a proof is known can no longer be tagged, or dropped for one.
		tooLate := late && mixed && (len(refusing) > 0 || len(dropping) > 0)
		if !refused && !tooLate {
			return "it is refused"
		}
		if len(got.to) > 0 {
			return "it is refused and delivered"
		}
		if !proofs { // which may still change for whom it is refused, or why
			return refusedAs(refusing, alone, got, mixed, seen)
		}
		return ""
	}
	if refused {
		return "it is not refused"
	}
	to := taking
	if w.tagMixed && mixed {
		// The next hop was never asked about those whose lists discard by the envelope.
		dropped := func(address string) bool {
			r := w.recipient(address)
			now, proved := w.ask(m, &r, m.from, false, atRcpt)
			return now.action == discard && proved.action == discard
		}
		to = append(slices.Clone(taking), slices.DeleteFunc(refusing, dropped)...)
	}
	if !slices.Equal(unique(got.to), unique(to)) {
		return fmt.Sprintf("delivered to %s, want %s", got.to, to)
	}
	if !proofs && len(to) > 0 && !containsAll(got.tags, tags) {
		return fmt.Sprintf("tagged by %s, want %s", got.tags, tags)
	}
	count := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	count("discarded for some", len(to) > 0 && len(dropping) > 0)
	count("tagged for some", len(refusing) > 0)
	count("delivered to several", len(to) > 1)
	return ""
}

// refusedAs returns what is wrong with a refusal for all.
func refusedAs(refusing []string, alone map[string]fate, got fate, mixed bool, seen map[string]int) string {
	strictest := 0
	for _, r := range refusing {
		strictest = max(strictest, alone[r].end.code)
	}
	is := func(r string) bool { return alone[r].end == got.end }
	if got.end.code != strictest || !slices.ContainsFunc(refusing, is) {
		return "it is refused in other words"
	}
	if notAsked := (got.end == reply{code: 451}); notAsked {
		seen["deferred, not asked"]++
	} else if got.advise != mixed {
		return fmt.Sprintf("it says that others may take it: %t", got.advise)
	}
	if mixed {
		seen["refused for all, mixed"]++
	}
	return ""
}

// containsAll reports whether all has each of some.
func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
