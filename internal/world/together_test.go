package world

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"spamgate/smtpfilter"
)

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

	fired   trouble  // at the next hop
	offered []string // who would have it without that
}

// entrance is a door to which messages are sent. It judges by what was applied last.
type entrance interface {
	String() string
	apply(smtpfilter.Settings)
	open()
	close() (faults []string)
	send(*message, *handling) done
}

// together compares what becomes of a message to its recipients together and to each alone. Those
// alone are sent plainly, and before the edits that come while the other one is sent.
func (w *mailWorld) together() string {
	m := w.m
	for _, d := range w.gate.doors {
		w.gate.apply(d, w.atMAIL)
		var alone []done
		for _, r := range m.rcpts {
			message := *m
			message.rcpts = []string{r}
			a := d.send(&message, &handling{})
			w.tell("  %s, %s alone: %s", d, r, a)
			if diff := w.judging.wrong(d, &message, a); diff != "" {
				return fmt.Sprintf("%s, %s alone: %s", d, r, diff)
			}
			alone = append(alone, a)
		}
		all := d.send(m, w.handling)
		w.tell("  %s: %s", d, all)
		diff := ""
		if service, ok := d.(*policyService); ok {
			diff = service.compose(alone, all)
		} else {
			diff = w.judging.troubled(d, m, alone, all)
		}
		if diff != "" || all.faults != nil {
			return fmt.Sprintf("%s: %s %s", d, diff, strings.Join(all.faults, "; "))
		}
	}
	return ""
}

func (d done) String() string {
	text := ""
	for _, refusal := range d.rcpts {
		text += cmp.Or(refusal, "taken") + ", "
	}
	if d.taken {
		text += fmt.Sprintf("%v, for %s", d.message, d.to)
	}
	if len(d.tags) > 0 {
		text += fmt.Sprintf(", tags %q", d.tags)
	}
	if d.fired != "" {
		text += ", the next hop " + string(d.fired)
	}
	return text
}

// troubled says what is not as it must be, also if the next hop does not take the message.
func (w *configuration) troubled(d entrance, m *message, alone []done, all done) string {
	switch {
	case all.fired == "":
		return w.compose(d, m, alone, all)
	case all.message.code != all.fired.code():
		return fmt.Sprintf("%v, and the next hop %s", all.message, all.fired)
	case all.fired.atEnd(): // else it would have been delivered, and has to be for whom it should
		all.message, all.to = reply{code: 250}, all.offered
		return w.compose(d, m, alone, all)
	}
	for i, a := range alone {
		if all.rcpts[i] != a.rcpts[0] {
			return fmt.Sprintf("RCPT TO:<%s>", m.rcpts[i])
		}
	}
	return ""
}

// wrong says what a recipient alone should not have got.
func (w *configuration) wrong(d entrance, m *message, a done) string {
	r := w.recipient(m.rcpts[0])
	atRcpt := w.noAnswer(&r, false, m.from.written)
	atEnd := w.find(m, r, atBody, false).noAnswer
	_, envelopeOnly := d.(*policyService)
	o := w.decide(m)
	if code := m.refused[r.address]; code != 0 && d.String() == "proxy" && a.faults == nil {
		asked := r.exempt || !atRcpt && o.message != nil && !w.dropped(m, r)
		if got := a.rcpts[0] == refusalOf(code, r.address).String(); got != asked {
			return "the next hop refuses the recipient, and the model says " + o.short()
		} else if got {
			return ""
		}
	}
	switch {
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
	case atEnd && a.message.code != o.message[0].code:
		return "the lists cannot be asked about the header, and the model says " + o.short()
	case !atEnd && !slices.Contains(o.message, a.message):
		return "the model says " + o.short()
	case !atEnd && !o.refused() && len(o.delivered) != len(a.to):
		return "the model says " + o.short()
	}
	return ""
}

// compose says what is not as it must be if the recipients of a message would get alone what
// they do:
//
//   - A recipient is taken or refused as alone.
//   - Those who refuse the message at its end refuse it for all, in their words: if nobody takes
//     it, if mixed_headers is not "tag", or if the lists of one of them cannot be asked.
//   - Else those get it who take it alone, and those who refuse it, with their tags; but nobody
//     whose lists discard it, whatever is proven.
//   - Those whose lists discard it do not get it. If that depends on a signature, and the proxy has
//     passed the message on to others, it refuses it for all.
func (w *configuration) compose(d entrance, m *message, alone []done, all done) string {
	var takes, refuses, drops, tags []string
	var refusals []reply
	late, noAnswer, passed, waits, refusedAlone, dropped := false, false, false, false, false, true
	for i, a := range alone {
		if all.rcpts[i] != a.rcpts[0] {
			return fmt.Sprintf("RCPT TO:<%s>", m.rcpts[i])
		}
		r := w.recipient(m.rcpts[i])
		dropped = dropped && (!a.taken || w.dropped(m, r))
		passed = passed || a.taken && (len(a.to) > 0 || a.late || a.message.code != 250 && !w.drops(m, r))
		waits = waits || a.taken && (w.find(m, r, atHeader, false).worst.action != w.find(m, r, atHeader, true).worst.action || w.unanswered(m, r))
	}
	for i, a := range alone {
		r := w.recipient(m.rcpts[i])
		last := w.find(m, r, atBody, false)
		end := last.worst
		switch {
		case !a.taken:
			continue
		case passed && waits && a.message.code == 250 && a.to == nil && w.drops(m, r) && end.action > discard:
			// Alone there is nobody to pass it on to, so that its signatures do not matter.
			refuses, refusals = append(refuses, m.rcpts[i]), append(refusals, refusal(end))
		case a.message.code != 250:
			refuses, refusals = append(refuses, m.rcpts[i]), append(refusals, a.message)
			noAnswer, refusedAlone = noAnswer || a.message.list == "", true
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
		return ""
	}
	if all.message.code == 250 && !refusedAlone && slices.Equal(unique(all.to), unique(takes)) && len(all.to) == len(takes) {
		refuses, refusals, late = nil, nil, false // each has got what he gets alone
	}
	worst := reply{}
	for _, r := range refusals {
		worst = reply{code: max(worst.code, r.code)}
	}
	refused := len(refuses) > 0 && (len(takes) == 0 || !w.tagMixed || noAnswer)
	get := slices.DeleteFunc(slices.Clone(refuses), func(address string) bool {
		return w.drops(m, w.recipient(address))
	})
	if !refused {
		takes = append(takes, get...)
		if late && len(takes) > 0 {
			refused, worst.code = true, 550
			if slices.ContainsFunc(refusals, func(r reply) bool { return r == all.message }) {
				worst.code = all.message.code // it says who refuses it, and not whose list discards it
			}
			refusals = nil
		}
	}
	switch {
	case refused && waits && !passed && all.message.code == 250 && all.to == nil && (dropped || w.decide(m).message[0].code == 250):
		return "" // with which code it would be refused depends on a signature, and nobody gets it to read that: the reverse-path discards it
	case refused:
		if all.message.code != worst.code || refusals != nil && !slices.Contains(refusals, all.message) {
			return fmt.Sprintf("%v, want one of %v", all.message, refusals)
		}
		if refusals != nil && !waits && all.message.list != "" && all.advises != (len(takes) > 0) {
			return "it says whether others would take it"
		}
	case all.message.code != 250 && waits && len(refuses) > 0 && all.late:
		return "" // without the tag of one of those who refuse it
	case all.message.code != 250:
		return fmt.Sprintf("%v, want it to be taken", all.message)
	}
	if refused {
		takes = nil
	}
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
	if len(refusals) > 0 && len(all.tags) == 0 && (!waits || len(get) > 0) {
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

// unanswered reports whether the lists cannot be asked about the header for a recipient who is reachable
// by every sender: what else is known of it may wait for a signature.
func (w *configuration) unanswered(m *message, r recipient) bool {
	return r.exempt && slices.ContainsFunc(m.fields, func(f field) bool {
		return slices.ContainsFunc(f.addresses, func(a address) bool { return w.noAnswer(&r, true, a.written) })
	})
}

// drops reports whether the message is dropped for a recipient, whatever is proven.
func (w *configuration) drops(m *message, r recipient) bool {
	today, proved := w.find(m, r, atHeader, false), w.find(m, r, atHeader, true)
	return w.dropped(m, r) || today.worst.action == discard && proved.worst.action == discard
}

// dropped reports whether a recipient's lists discard what comes from a reverse-path.
func (w *configuration) dropped(m *message, r recipient) bool {
	today, proved := w.ask(m, &r, m.from, false, atRcpt)
	return today.action == discard && proved.action == discard
}

var idPart = regexp.MustCompile(`; id [A-Z2-7]{12}`)

func withoutID(text string) string { return idPart.ReplaceAllString(text, "") }

func (p *proxy) send(m *message, h *handling) done {
	o := p.run(m, h)
	d := done{message: short(o.message), advises: strings.Contains(o.message.String(), othersAlone), faults: o.faults, fired: o.fired}
	for _, r := range o.rcpts {
		text := ""
		if r.Positive() {
			d.taken = true
		} else {
			text = withoutID(r.String())
		}
		d.rcpts = append(d.rcpts, text)
	}
	for _, delivery := range o.delivered {
		d.to = append(d.to, delivery.to...)
	}
	for _, delivery := range o.hopHas.offered {
		d.offered = append(d.offered, delivery.to...)
	}
	for _, delivery := range slices.Concat(o.delivered, o.aborted, o.hopHas.offered) {
		for _, tag := range tagPart.FindAllSubmatch(delivery.text, -1) {
			d.tags = append(d.tags, string(tag[1]))
		}
	}
	d.late = o.opened > 0 && d.to == nil && d.offered == nil
	return d
}

// othersAlone is a part of a refusal if some recipients would take the message.
const othersAlone = "send it to the others alone"
