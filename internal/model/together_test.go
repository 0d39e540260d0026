package model

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spamgate/smtpfilter"
)

// TestTogether sends each message to its recipients together, and to each of them alone, through
// the proxy, the milter and the policy service. What becomes of the first must follow from the
// second: every recipient gets the reply that it gets alone, and compose has the rest. What a
// recipient gets alone must be the model's, or, if the lists cannot be asked, a refusal for now.
//
// The recipients have lists, entries and policies of their own; some wait for a signature; and
// the lists of some cannot be asked. SPAMGATE_MODEL_CASES is the number of messages. A failure
// names its seed:
//
//	go test ./internal/model -run TestTogether -model.seed=N
func TestTogether(t *testing.T) {
	g := newGate(t)
	doors := []entrance{&proxy{g}, newMilter(t, g), newPolicyService(t, g)}
	seen := tally{}
	apply := func(w *world) {
		settings := g.settings(t, w)
		for _, d := range doors {
			must(t, d.apply(settings))
		}
	}
	for n := range uint64(cases(t)) {
		seed := *seed + n/messagesPerParty
		gen := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		w, messages := gen.party()
		if n%messagesPerParty == 0 {
			apply(w)
		}
		m := messages[n%messagesPerParty]
		if diff := together(t, doors, w, m, seen); diff != "" {
			w, m, diff = shrink(w, m, diff, func(w *world, m *message) string {
				apply(w)
				return together(t, doors, w, m, tally{})
			})
			t.Fatalf("-model.seed=%d: %s\n%s\n%s", seed, diff, w, m)
		}
	}
	t.Log(seen)
}

// messagesPerParty is how many messages there are for each configuration.
const messagesPerParty = 8

// party returns a configuration and messages to two to four recipients, some of whom want
// something of their own.
func (g *generator) party() (*world, []*message) {
	rcpts := []string{"ann@m.example", "bob@m.example", "cy@n.m.example", "ann@o.example", "dan@m.example", "postmaster@m.example"}
	g.Shuffle(len(rcpts), func(i, j int) { rcpts[i], rcpts[j] = rcpts[j], rcpts[i] })
	rcpts = rcpts[:2+g.IntN(3)]
	g.pool = nil
	for _, a := range []string{"a@p.example", "b@s.example", "a@p.co.uk"} {
		g.pool = append(g.pool, address{a, []string{a}, nil})
	}
	w := &world{srs: true, batv: true, monitor: g.chance(20), checkBounces: g.chance(3), tagMixed: g.chance(2)}
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
		f := fault{rcpt: rcpts[g.IntN(len(rcpts))], keys: g.chance(3), envelope: g.chance(3)}
		f.header = !f.envelope || g.chance(2)
		if !f.keys && g.chance(2) {
			f.sender = g.pool[g.IntN(len(g.pool))].written
			if g.chance(2) {
				f.rcpt = ""
			}
		}
		w.faults = append(w.faults, f)
	}
	var messages []*message
	for range messagesPerParty {
		m := g.message()
		m.rcpts = slices.Clone(rcpts)
		g.Shuffle(len(rcpts), func(i, j int) { m.rcpts[i], m.rcpts[j] = m.rcpts[j], m.rcpts[i] })
		messages = append(messages, m)
	}
	return w, messages
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
	entry := func() string {
		_, domain, _ := strings.Cut(g.pool[0].written, "@")
		name := g.pool[g.IntN(len(g.pool))].written
		return g.one(name, name, name, domain, domain)
	}
	if !l.perRecipient {
		l.lines = []string{entry(), entry()}
		return l
	}
	l.lines = []string{"z@z.example z@z.example"}
	for _, r := range rcpts {
		if g.chance(alike) {
			l.lines = append(l.lines, r+" "+entry())
		}
	}
	return l
}

// action returns an action of a block list.
func (g *generator) action() action {
	return [...]action{reject, reject, deferred, discard, discard, tag}[g.IntN(6)]
}

// done is what a door did with a message.
type done struct {
	rcpts   []string // the refusals of the recipients without their ids; "": taken
	taken   bool     // a recipient at least
	message reply    // to the end of the message
	advises bool     // to send it to the others alone
	to      []string // who gets it
	tags    []string // lists, also if the message was refused after it had gone out with them
	late    bool     // it was refused or dropped after the next hop had it but for its end
	faults  []string
}

// entrance is a door to which messages are sent. It judges by the world that was applied last.
type entrance interface {
	String() string
	apply(smtpfilter.Settings) error
	send(t *testing.T, m *message) done
}

// together compares what becomes of a message to its recipients together and to each alone.
func together(t *testing.T, doors []entrance, w *world, m *message, seen tally) string {
	for _, d := range doors {
		var alone []done
		for _, r := range m.rcpts {
			message := *m
			message.rcpts = []string{r}
			a := d.send(t, &message)
			if diff := w.wrong(d, &message, a); diff != "" {
				return fmt.Sprintf("%s, %s alone: %s\n%+v", d, r, diff, a)
			}
			alone = append(alone, a)
		}
		all := d.send(t, m)
		diff := ""
		if service, ok := d.(*policyService); ok {
			diff = service.compose(alone, all)
		} else {
			diff = w.compose(d, m, alone, all, seen)
		}
		if diff != "" || all.faults != nil {
			return fmt.Sprintf("%s: %s %s\nalone:    %+v\ntogether: %+v", d, diff, all.faults, alone, all)
		}
	}
	return ""
}

// wrong says what a recipient alone should not have got.
func (w *world) wrong(d entrance, m *message, a done) string {
	r := w.recipient(m.rcpts[0])
	atRcpt, atEnd := w.noAnswer(m, &r)
	_, envelopeOnly := d.(*policyService)
	switch o := w.decide(m); {
	case a.faults != nil:
		return a.faults[0]
	case r.exempt && (!a.taken || a.message.code != 250):
		return "refused although it is reachable by every sender"
	case r.exempt:
	case atRcpt && (a.taken || a.rcpts[0][0] != '4'):
		return "the lists cannot be asked about the reverse-path"
	case atRcpt:
	case a.taken != (o.message != nil) && !envelopeOnly:
		return "RCPT, and the model says " + o.short()
	case envelopeOnly || !a.taken:
	case w.dropped(m, r) && len(a.to) == 0: // nobody gets it, and the proxy does not wait for signatures
	case atEnd && (a.message.code == 250 || a.message.code == 550 && !o.refused()):
		return "the lists cannot be asked about the header, and the model says " + o.short()
	case !atEnd && !slices.Contains(o.message, a.message):
		return "the model says " + o.short()
	case !atEnd && !o.refused() && len(o.delivered) != len(a.to):
		return "the model says " + o.short()
	}
	return ""
}

// noAnswer reports whether the lists cannot be asked for a recipient.
func (w *world) noAnswer(m *message, r *recipient) (atRcpt, atEnd bool) {
	own := slices.ContainsFunc(w.lists, func(l list) bool {
		return l.perRecipient && slices.ContainsFunc(l.lines, func(line string) bool { return strings.HasPrefix(line, r.address+" ") })
	})
	envelope, _ := w.ask(m, r, m.from, false, atBody)
	judged := (m.from.written != "" || w.checkBounces) && !envelope.clears
	for _, f := range w.faults {
		if f.rcpt != "" && f.rcpt != r.address || !own && f.rcpt != "" && !f.keys {
			continue
		}
		atRcpt = atRcpt || f.keys || f.about(false, m.from.written)
		for _, field := range m.fields {
			for _, a := range field.addresses {
				atEnd = atEnd || judged && f.about(true, a.written)
			}
		}
	}
	return atRcpt, atEnd
}

// compose says what is not as it must be if the recipients of a message would get alone what
// they do:
//
//   - A recipient is taken or refused as alone.
//   - Those who refuse the message at its end refuse it for all, in their words: if nobody takes
//     it, if mixed_headers is not "tag", or if the lists of one of them cannot be asked.
//   - Else those get it who take it alone, and those who refuse it, with their tags; but nobody
//     whose lists discard it because of its reverse-path.
//   - Those whose lists discard it do not get it. If that depends on a signature, and the proxy has
//     passed the message on to others, it refuses it for all.
func (w *world) compose(d entrance, m *message, alone []done, all done, seen tally) string {
	var takes, refuses, drops, tags []string
	var refusals []reply
	late, noAnswer, passed, waits := false, false, false, false
	for i, a := range alone {
		if all.rcpts[i] != a.rcpts[0] {
			return fmt.Sprintf("RCPT TO:<%s>", m.rcpts[i])
		}
		r := w.recipient(m.rcpts[i])
		passed = passed || a.taken && (len(a.to) > 0 || a.late || a.message.code != 250)
		waits = waits || a.taken && w.find(m, r, atHeader, false).worst.action != w.find(m, r, atHeader, true).worst.action
	}
	for i, a := range alone {
		r := w.recipient(m.rcpts[i])
		last := w.find(m, r, atBody, false)
		end := last.worst
		switch {
		case !a.taken:
			continue
		case passed && waits && a.message.code == 250 && a.to == nil && w.dropped(m, r) && end.action > discard:
			// Alone there is nobody to pass it on to, so that its signatures do not matter.
			refuses, refusals = append(refuses, m.rcpts[i]), append(refusals, refusal(end))
		case a.message.code != 250:
			refuses, refusals = append(refuses, m.rcpts[i]), append(refusals, a.message)
			noAnswer = noAnswer || a.message.list == ""
		case len(a.to) > 0:
			takes = append(takes, m.rcpts[i])
			for _, l := range a.tags {
				if !waits || slices.Contains(last.tags, l) { // a signature that others wait for may spare him a tag
					tags = append(tags, l)
				}
			}
		default:
			drops, late = append(drops, m.rcpts[i]), late || a.late
		}
	}
	if all.taken != (len(takes)+len(refuses)+len(drops) > 0) {
		return "the recipients"
	}
	if !all.taken {
		seen[d.String()+" refused at RCPT"]++
		return ""
	}
	worst := reply{}
	for _, r := range refusals {
		worst = reply{code: max(worst.code, r.code)}
	}
	refused := len(refuses) > 0 && (len(takes) == 0 || !w.tagMixed || noAnswer)
	if !refused {
		takes = append(takes, slices.DeleteFunc(refuses, func(address string) bool {
			return w.dropped(m, w.recipient(address))
		})...)
		if late && len(takes) > 0 {
			refused, worst.code = true, 550
			if slices.ContainsFunc(refusals, func(r reply) bool { return r == all.message }) {
				worst.code = all.message.code // it says who refuses it, and not whose list discards it
			}
			refusals = nil
		}
	}
	switch {
	case refused:
		seen[fmt.Sprintf("%s refused with %d takers, %d droppers", d, len(takes), len(drops))]++
		if all.message.code != worst.code || refusals != nil && !slices.Contains(refusals, all.message) {
			return fmt.Sprintf("%v, want one of %v", all.message, refusals)
		}
		if refusals != nil && !waits && all.message.list != "" && all.advises != (len(takes) > 0) {
			return "it says whether others would take it"
		}
	case all.message.code != 250 && waits && len(refuses) > 0 && all.late:
		seen[d.String()+" refused since the tags were written before"]++
		return "" // without the tag of one of those who refuse it
	case all.message.code != 250:
		return fmt.Sprintf("%v, want it to be taken", all.message)
	}
	if refused {
		takes = nil
	}
	seen[fmt.Sprintf("%s taken for %d, dropped for %d", d, len(takes), len(drops))]++
	if !slices.Equal(unique(all.to), unique(takes)) || len(all.to) != len(takes) {
		return fmt.Sprintf("delivered to %s, want %s", all.to, takes)
	}
	if len(takes) == 0 {
		return ""
	}
	for _, r := range refusals {
		if len(m.signatures) == 0 { // else what may yet be proven can be the reason that is shown
			tags = append(tags, r.list)
		}
	}
	if len(refusals) > 0 && len(all.tags) == 0 {
		return "without a tag"
	}
	for _, l := range tags {
		if !slices.Contains(all.tags, l) {
			return fmt.Sprintf("tags %s, want %s", all.tags, tags)
		}
	}
	for _, l := range all.tags {
		if !waits && len(drops)+len(refuses) == 0 && !slices.Contains(tags, l) {
			return fmt.Sprintf("tags %s, want %s", all.tags, tags)
		}
	}
	return ""
}

// dropped reports whether a recipient's lists discard what comes from a reverse-path.
func (w *world) dropped(m *message, r recipient) bool {
	today, proved := w.ask(m, &r, m.from, false, atRcpt)
	return today.action == discard && proved.action == discard
}

// proxy is the gate's SMTP session.
type proxy struct{ *gate }

func (*proxy) String() string { return "proxy" }

func (p *proxy) apply(s smtpfilter.Settings) error {
	_, err := p.listener.Apply(s)
	return err
}

var idPart = regexp.MustCompile(`; id [A-Z2-7]{12}`)

func (p *proxy) send(t *testing.T, m *message) done {
	o := p.run(t, m)
	d := done{message: short(o.message), advises: strings.Contains(o.message.String(), othersAlone), faults: o.faults}
	for _, r := range o.rcpts {
		text := ""
		if r.Positive() {
			d.taken = true
		} else {
			text = idPart.ReplaceAllString(r.String(), "")
		}
		d.rcpts = append(d.rcpts, text)
	}
	if len(o.delivered) > 1 {
		d.faults = append(d.faults, "delivered twice")
	}
	for _, delivery := range o.delivered {
		d.to = append(d.to, delivery.to...)
	}
	for _, delivery := range append(o.delivered, o.aborted...) {
		for _, tag := range tagPart.FindAllSubmatch(delivery.text, -1) {
			d.tags = append(d.tags, string(tag[1]))
		}
	}
	d.late = o.opened > 0 && d.to == nil
	return d
}

// othersAlone is a part of a refusal if some recipients would take the message.
const othersAlone = "send it to the others alone"
