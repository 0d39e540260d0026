package smtpfilter

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/header"
)

// JudgeHeader judges every address in a header, and every form that servers may turn into an
// address, for recipients. [Judgement.JudgesHeader] says whether that is wanted.
//
// An address gives a finding. If it is not an address because of a part of its domain
// (x@*.listed.example), the first parent that makes one is judged, so that nonsense does not
// hide a listed domain.
//
// A form gives one finding, about the reading with the strictest verdict, or else about the
// first reading. An address may be a form too: servers complete user@host, and read
// user%host@domain as user@host if the domain is theirs. Then there is a finding only if an
// entry matches. Forms are looked up as ReadForm or ReadWord, so that they block and never
// allow. Words beside addresses are looked up as ReadName if allow entries let in all
// addresses of the field. If that waits for a proof, the finding does, too.
//
// Text that cannot be decoded, in a field without an address, gives a finding with an error.
//
// With TooMany there are no more findings. Each is valid only until the next one.
func (p *Policy) JudgeHeader(ctx context.Context, j verdict.Judge, m *verdict.Message, s *HeaderSenders, to *verdict.For) iter.Seq[*verdict.Finding] {
	return func(yield func(*verdict.Finding) bool) {
		m.HeaderSenders = s.Senders
		h := headerJudge{asker: asker{ctx, j, m, to}, senders: s}
		for i := range s.Senders {
			if s.TooMany() || !h.judgeSender(&s.Senders[i], yield) {
				return
			}
		}
		for _, u := range s.Unreadable {
			s.finding = verdict.Finding{Identity: u.Field, Address: u.Address, Err: errUndecodable}
			if !yield(&s.finding) {
				return
			}
		}
		for i := range s.Forms {
			if s.TooMany() || !h.judgeForm(&s.Forms[i], yield) {
				return
			}
		}
	}
}

// errUndecodable is about a field without an address whose text nobody can read.
var errUndecodable = errors.New("an encoded-word in an unknown charset, or whose text is damaged")

// headerJudge judges the senders and the forms in a header. The finding about each is in
// HeaderSenders.finding, where it takes no place on the stack.
type headerJudge struct {
	asker      asker
	senders    *HeaderSenders
	notAllowed []string                   // fields with an address that no allow entry lets in
	awaited    map[string][]verdict.Proof // the proofs on which that depends, by field
}

// judgeSender yields the finding about an address, and about what servers may make of it. It
// returns false if yield does.
func (h *headerJudge) judgeSender(a *verdict.HeaderSender, yield func(*verdict.Finding) bool) bool {
	f := &h.senders.finding
	*f = verdict.Finding{Identity: a.Field, Address: a.Address}
	h.senders.ask(&h.asker, verdict.ReadAddress, a.Address, f)
	h.note(f)
	if !yield(f) {
		return false
	}
	*f = verdict.Finding{Identity: a.Field, Form: a.Address}
	r := formJudge{asker: &h.asker, senders: h.senders, reading: verdict.ReadForm, finding: f}
	r.complete(a.Address)
	r.routes(a.Address)
	return !r.matched || yield(f)
}

// note notes whether an allow entry lets in the address of a field.
func (h *headerJudge) note(f *verdict.Finding) {
	v := &f.Verdict
	switch {
	case letIn(v):
	case v.Proved != nil && letIn(v.Proved):
		if h.awaited == nil {
			h.awaited = map[string][]verdict.Proof{}
		}
		h.awaited[f.Identity] = append(h.awaited[f.Identity], v.Proofs...)
	case !slices.Contains(h.notAllowed, f.Identity):
		h.notAllowed = append(h.notAllowed, f.Identity)
	}
}

// judgeForm yields the finding about a form. It returns false if yield does.
func (h *headerJudge) judgeForm(form *header.Form, yield func(*verdict.Finding) bool) bool {
	readings := form.Readings()
	if len(readings) == 0 {
		return true
	}
	switch proofs := h.awaited[form.Field]; {
	case !form.Beside:
		h.judgeReadings(form, readings, verdict.ReadForm)
	case slices.Contains(h.notAllowed, form.Field):
		h.judgeReadings(form, readings, verdict.ReadWord)
	case proofs == nil:
		h.judgeReadings(form, readings, verdict.ReadName)
	default:
		h.judgeAwaited(form, readings, proofs)
	}
	return yield(&h.senders.finding)
}

// judgeAwaited judges a word beside addresses that allow entries let in if they are proven.
func (h *headerJudge) judgeAwaited(form *header.Form, readings []string, proofs []verdict.Proof) {
	v := &h.senders.finding.Verdict
	h.judgeReadings(form, readings, verdict.ReadName)
	proved := *v
	h.judgeReadings(form, readings, verdict.ReadWord)
	if v.Action != proved.Action {
		v.Pending, v.Proved, v.Proofs = true, &proved, proofs
	}
}

// judgeReadings judges the readings of a form.
func (h *headerJudge) judgeReadings(form *header.Form, readings []string, reading verdict.Reading) {
	f := &h.senders.finding
	*f = verdict.Finding{Identity: form.Field, Address: readings[0], Form: form.Text}
	r := formJudge{asker: &h.asker, senders: h.senders, beside: form.Beside, reading: reading, finding: f}
	for _, address := range readings {
		r.ask(address)
		r.complete(address)
		r.routes(address)
	}
}

// letIn reports whether an allow entry lets a sender in. One that asks for a proof on which
// nothing depends does, so that the proof is not asked for because of a word that is most likely
// a name.
func letIn(v *verdict.Verdict) bool {
	return v.Action == verdict.Accept && (!v.Match.IsZero() ||
		slices.ContainsFunc(v.Matches, func(m verdict.Match) bool { return m.Allow && m.Unproven && v.Proofs == nil }))
}

// formJudge judges the readings of one form, and keeps the strictest verdict.
type formJudge struct {
	asker   *asker
	senders *HeaderSenders
	beside  bool
	reading verdict.Reading
	finding *verdict.Finding
	matched bool
}

// ask judges one reading. If neither it nor a parent is an address, ask does nothing.
func (r *formJudge) ask(address string) {
	var finding verdict.Finding
	r.senders.ask(r.asker, r.reading, address, &finding)
	if finding.Err != nil && !noAnswer(&finding) {
		return
	}
	if finding.Verdict.Match.IsZero() && len(finding.Verdict.Monitored) == 0 && finding.Err == nil {
		return
	}
	f := r.finding
	monitored := f.Verdict.Monitored
	if free := maxLines - len(monitored); free > 0 {
		monitored = append(monitored, finding.Verdict.Monitored[:min(free, len(finding.Verdict.Monitored))]...)
	}
	if !r.matched || finding.Verdict.Action > f.Verdict.Action {
		f.Verdict = finding.Verdict
		f.Address, f.Err = address, finding.Err
	}
	f.Verdict.Monitored = monitored
	r.matched = true
}

// complete judges an address with each domain that a server may add to it: to "user@", or
// to "user@host" without a dot.
func (r *formJudge) complete(address string) {
	domain := address[strings.LastIndexByte(address, '@')+1:]
	if strings.ContainsAny(domain, ".[:") {
		return
	}
	if domain != "" {
		address += "."
	}
	for _, name := range r.senders.completions() {
		if r.senders.TooMany() || r.beside && r.senders.besideCost > r.senders.limit/2 {
			return
		}
		before := r.senders.cost
		r.ask(address + name)
		if r.beside {
			r.senders.besideCost += r.senders.cost - before
			r.senders.cost = before
		}
	}
}

// maxRoutes bounds how often a route leads to the server itself.
const maxRoutes = 4

// routes judges what a server makes of user%host@domain and host!user@domain if the domain
// is its own.
func (r *formJudge) routes(address string) {
	for range maxRoutes {
		pos := strings.LastIndexByte(address, '@')
		if !strings.ContainsAny(address[:pos], "%!") || !r.senders.isLocal(address[pos+1:]) {
			return
		}
		if r.senders.cost += costOf(address); r.senders.TooMany() {
			return
		}
		readings := header.Routes(address)
		for _, route := range readings {
			r.ask(route)
			if !strings.HasSuffix(route, "@") && !r.beside {
				r.complete(route)
			}
		}
		if len(readings) == 0 {
			return
		}
		address = readings[0]
	}
}
