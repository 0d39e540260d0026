package world

import (
	"slices"
	"strings"
)

// reply is the gate's answer to a command.
type reply struct {
	code   int
	list   string // that decides, of a refusal
	sender string // wrapped, by whose match a list decides
}

func refusal(a ruling) reply {
	return reply{map[action]int{reject: 550, deferred: 451}[a.action], a.list, a.sender}
}

// outcome is what becomes of a message.
type outcome struct {
	rcpts     []reply
	message   []reply // to the end of the message: one of these; nil if no recipient was accepted
	delivered []string
	tags      []string // the lists whose names the message carries
	mayTags   []string // those that it may carry besides

	// The phase at which the decision falls. AnyPhase says that it may fall later, since
	// what was still to come changes nothing.
	phase    phase
	anyPhase bool

	// Mixed says that some would take the message that is refused for all. With unsure it
	// depends on the phase.
	mixed, unsure bool

	// or, if not nil, is as good.
	or *outcome
}

// recipient is a recipient and what counts for it.
type recipient struct {
	address string
	exempt  bool
	rule    rule
}

func (w *configuration) recipient(address string) recipient {
	r := recipient{address: address}
	local, domain, _ := strings.Cut(address, "@")
	for _, rule := range w.rules {
		if rule.matches(address) {
			r.rule = rule
			break
		}
	}
	r.exempt = local == "postmaster" || r.rule.exempt
	for _, e := range w.exemptRecipients {
		l, d, _ := strings.Cut(e, "@")
		if (l == "" || l == local) && (d == "" || d == domain) {
			r.exempt = true
		}
	}
	return r
}

// matches reports whether the rule is one for a recipient.
func (r *rule) matches(address string) bool {
	l := list{lines: r.match}
	return l.match(address, "") >= 0
}

// keys returns the normal forms of the entries of match.
func (r *rule) keys() []string {
	keys := slices.Clone(r.match)
	for i, k := range keys {
		k, exception := strings.CutPrefix(k, "!")
		keys[i] = strings.TrimPrefix(strings.Replace(k, "*@", "@", 1), ".")
		if exception {
			keys[i] = "!" + keys[i]
		}
	}
	return keys
}

// limit returns what an answer means for the recipient.
func (r *recipient) limit(a ruling) ruling {
	switch {
	case r.exempt && a.action > tag, r.rule.monitor:
		a.action = accept
	case r.rule.maxAction != accept:
		a.action = min(a.action, r.rule.maxAction)
	}
	if a.action == accept {
		a.list, a.sender = "", ""
	}
	return a
}

// ask returns what the lists say of a sender, for a recipient.
func (w *configuration) ask(m *message, r *recipient, a address, header bool, current phase) (today, proved ruling) {
	q := question{w, m, a, header, r.address, r.rule}
	today, proved = q.answer(current)
	return r.limit(today), r.limit(proved)
}

// finding is what counts for one recipient.
type finding struct {
	recipient
	worst ruling
	tags  []string

	noAnswer bool // about a sender in the header
}

// noAnswer reports whether the lists cannot be asked for a recipient.
func (w *configuration) noAnswer(r *recipient, header bool, sender string) bool {
	own := slices.ContainsFunc(w.lists, func(l list) bool {
		return l.perRecipient && slices.ContainsFunc(l.lines, func(line string) bool { return strings.HasPrefix(line, r.address+" ") })
	})
	return slices.ContainsFunc(w.faults, func(f outage) bool {
		switch {
		case f.rcpt != "" && f.rcpt != r.address:
			return false
		case f.keys:
			return !header
		}
		return (f.rcpt == "" || own) && f.about(header, sender)
	})
}

// tagging returns the lists that tag a message for a recipient, unless something else counts.
func (w *configuration) tagging(m *message, r recipient) (names []string) {
	add := func(a address, header bool) {
		q := question{w, m, a, header, r.address, r.rule}
		for _, sender := range w.senders(a) {
			for i := range w.lists {
				if l := &w.lists[i]; l.actionAt(header) == tag && q.own(l, sender) >= 0 {
					names = append(names, l.name)
				}
			}
		}
	}
	add(m.from, false)
	for _, field := range m.fields {
		for _, a := range field.addresses {
			add(a, true)
		}
	}
	return names
}

// find returns what counts for a recipient, if pending proofs hold (proved) or not.
func (w *configuration) find(m *message, r recipient, current phase, proved bool) finding {
	f := finding{recipient: r}
	add := func(a ruling) {
		if a.action > f.worst.action {
			f.worst = a
		}
		if a.action == tag {
			f.tags = append(f.tags, a.list)
		}
	}
	choose := func(today, later ruling) ruling {
		if proved {
			return later
		}
		return today
	}
	envelope := choose(w.ask(m, &r, m.from, false, current))
	add(envelope)
	if envelope.clears || m.from.written == "" && !w.checkBounces {
		return f
	}
	for _, field := range m.fields {
		for _, a := range field.addresses {
			switch {
			case !w.noAnswer(&r, true, a.written):
				add(choose(w.ask(m, &r, a, true, current)))
			case !r.exempt:
				f.noAnswer = true
				add(ruling{action: deferred})
			}
		}
	}
	if envelope.mayClear && f.worst != envelope && (f.worst.action == reject || f.worst.action == discard) {
		f.worst.action = deferred
	}
	return f
}

// decide returns what becomes of a message.
func (w *configuration) decide(m *message) outcome {
	var rcpts []reply
	var taken, dropped []recipient
	for _, path := range m.rcpts {
		r := w.recipient(path)
		if w.exemptClient {
			taken, rcpts = append(taken, r), append(rcpts, reply{code: 250})
			continue
		}
		switch today, proved := w.ask(m, &r, m.from, false, atRcpt); {
		case today.action <= tag || today.action != proved.action:
			taken, rcpts = append(taken, r), append(rcpts, reply{code: 250})
		case today.action == discard:
			dropped, rcpts = append(dropped, r), append(rcpts, reply{code: 250})
		default:
			rcpts = append(rcpts, refusal(today))
		}
	}
	o := w.conclude(m, taken, dropped)
	o.rcpts = rcpts
	return o
}

// conclude returns what becomes of a message to recipients that were accepted: those that
// the next hop has been asked about, and those whose mail is dropped because of the envelope.
func (w *configuration) conclude(m *message, taken, dropped []recipient) outcome {
	switch {
	case len(taken)+len(dropped) == 0:
		return outcome{}
	case w.exemptClient:
		return outcome{message: []reply{{code: 250}}, delivered: addresses(taken)}
	}
	findings := func(current phase, proved bool) (all []finding) {
		for _, r := range append(slices.Clone(taken), dropped...) {
			all = append(all, w.find(m, r, current, proved))
		}
		return all
	}
	today, proved := findings(atHeader, false), findings(atHeader, true)
	o, best := w.settle(today, dropped), w.settle(proved, dropped)
	if slices.EqualFunc(today, proved, func(a, b finding) bool { return a.worst.action == b.worst.action }) {
		o.phase = atHeader
		if best.refused() && o.refused() {
			o.unsure = o.mixed != best.mixed
			o.message = append(o.message, best.message...) // another list refuses it, whatever is proven
		}
		return o
	}
	// The message is passed on, to those for whom it is not dropped in any case. Tags and
	// recipients stay as they are from here on.
	for i := range today {
		if today[i].worst.action == discard && proved[i].worst.action == discard {
			dropped = append(dropped, today[i].recipient)
		}
	}
	left := slices.DeleteFunc(slices.Clone(taken), func(r recipient) bool { return slices.Contains(addresses(dropped), r.address) })
	inAnyCase := o.refused() && best.refused() && o.message[0].code == best.message[0].code
	if len(left) == 0 && inAnyCase {
		best.phase = atHeader
		return best
	}
	if len(left) == 0 {
		return outcome{message: []reply{{code: 250}}} // there is nobody to pass it on to
	}
	late := findings(atBody, false)
	end := w.settleLate(late, dropped)
	end.phase = atBody
	end.anyPhase = o.refused() && best.refused()
	end.unsure = end.mixed != best.mixed || end.mixed != o.mixed
	if inAnyCase {
		end.message = append(end.message, best.message...) // it may be refused at once
	}
	for _, f := range append(today, proved...) {
		end.mayTags = append(end.mayTags, f.tags...)
		end.mayTags = append(end.mayTags, w.tagging(m, f.recipient)...) // some proofs may hold and others not
		if f.worst.action > discard && w.tagMixed {
			end.mayTags = append(end.mayTags, f.worst.list)
		}
	}
	if end.refused() && w.tagMixed {
		// It may have the tags of those who refuse it, since some do in any case.
		tagged := w.settle(late, dropped)
		if !tagged.refused() {
			tagged.phase, tagged.mayTags = atBody, append(tagged.mayTags, end.mayTags...)
			end.or = &tagged
		}
	}
	return end
}

func (o *outcome) refused() bool { return o.message[0].code != 250 }

func addresses(rs []recipient) (all []string) {
	for _, r := range rs {
		all = append(all, r.address)
	}
	return all
}

// settle decides about a message for all recipients together, at the end of the header.
func (w *configuration) settle(findings []finding, dropped []recipient) outcome {
	var o outcome
	refusing, taking := split(findings)
	if len(refusing) > 0 && (len(taking) == 0 || !w.tagMixed) {
		o = refuse(refusing)
		o.mixed = len(taking) > 0
		return o
	}
	o.message = []reply{{code: 250}}
	for _, f := range findings {
		o.mayTags = append(o.mayTags, f.tags...)
		if f.worst.action > discard {
			o.mayTags = append(o.mayTags, f.worst.list)
		}
		if f.worst.action == discard || slices.Contains(addresses(dropped), f.address) {
			continue
		}
		o.delivered = append(o.delivered, f.address)
		o.tags = append(o.tags, f.tags...)
		if f.worst.action > tag {
			o.tags = append(o.tags, f.worst.list)
		}
	}
	return o
}

// settleLate decides at the end of a message that was passed on: no tag can be added any more,
// and no recipient left out.
func (w *configuration) settleLate(findings []finding, dropped []recipient) outcome {
	var o outcome
	refusing, taking := split(findings)
	if len(refusing) > 0 {
		o = refuse(refusing)
		o.mixed = len(taking) > 0
		return o
	}
	for _, f := range findings {
		if f.worst.action == discard && len(taking) > 0 && !slices.Contains(addresses(dropped), f.address) {
			f.worst.action = reject // who would get it otherwise
			o = refuse([]finding{f})
			o.mixed = true
			return o
		}
	}
	o.message = []reply{{code: 250}}
	for _, f := range taking {
		o.tags = append(o.tags, f.tags...)
		o.delivered = append(o.delivered, f.address)
	}
	return o
}

func split(findings []finding) (refusing, taking []finding) {
	for _, f := range findings {
		switch {
		case f.worst.action >= deferred:
			refusing = append(refusing, f)
		case f.worst.action <= tag:
			taking = append(taking, f)
		}
	}
	return refusing, taking
}

// refuse returns the outcome of a message that is refused for all. The reply is the strictest.
func refuse(refusing []finding) outcome {
	var o outcome
	worst := accept
	for _, f := range refusing {
		worst = max(worst, f.worst.action)
	}
	for _, f := range refusing {
		if f.worst.action == worst {
			o.message = append(o.message, refusal(f.worst))
		}
	}
	return o
}
