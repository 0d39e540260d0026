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
// address, for recipients. JudgesHeader says whether the policy wants that.
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
// With TooMany there are no more findings.
func (p *Policy) JudgeHeader(ctx context.Context, j verdict.Judge, m *verdict.Message, s *HeaderSenders, to verdict.For) iter.Seq[verdict.Finding] {
	return func(yield func(verdict.Finding) bool) {
		m.HeaderSenders = s.Senders
		ask := asker{ctx, j, m, to}
		notAllowed := make(map[string]bool)         // fields with an address that no allow entry lets in
		awaited := make(map[string][]verdict.Proof) // the proofs on which that depends, by field
		for _, a := range s.Senders {
			if s.TooMany() {
				return
			}
			f := verdict.Finding{Identity: a.Field, Address: a.Address}
			f.Verdict, f.Err = s.ask(ask, verdict.ReadAddress, a.Address)
			switch {
			case letIn(f.Verdict):
			case f.Verdict.Proved != nil && letIn(*f.Verdict.Proved):
				awaited[a.Field] = append(awaited[a.Field], f.Verdict.Proofs...)
			default:
				notAllowed[a.Field] = true
			}
			if !yield(f) {
				return
			}
			r := formJudge{asker: ask, senders: s, reading: verdict.ReadForm,
				finding: verdict.Finding{Identity: a.Field, Form: a.Address}}
			r.complete(a.Address)
			r.routes(a.Address)
			if r.matched && !yield(r.finding) {
				return
			}
		}
		for _, form := range s.Forms {
			if s.TooMany() {
				return
			}
			readings := form.Readings()
			if len(readings) == 0 {
				continue
			}
			judge := func(reading verdict.Reading) verdict.Finding {
				r := formJudge{asker: ask, senders: s, beside: form.Beside, reading: reading,
					finding: verdict.Finding{Identity: form.Field, Address: readings[0], Form: form.Text}}
				for _, address := range readings {
					r.ask(address)
					r.complete(address)
					r.routes(address)
				}
				return r.finding
			}
			var f verdict.Finding
			switch proofs := awaited[form.Field]; {
			case !form.Beside:
				f = judge(verdict.ReadForm)
			case notAllowed[form.Field]:
				f = judge(verdict.ReadWord)
			case proofs == nil:
				f = judge(verdict.ReadName)
			default:
				proved := judge(verdict.ReadName).Verdict
				if f = judge(verdict.ReadWord); f.Verdict.Action != proved.Action {
					f.Verdict.Pending, f.Verdict.Proved, f.Verdict.Proofs = true, &proved, proofs
				}
			}
			if !yield(f) {
				return
			}
		}
	}
}

// letIn reports whether an allow entry lets a sender in. One that asks for a proof on which
// nothing depends does, so that the proof is not asked for because of a word that is most likely
// a name.
func letIn(v verdict.Verdict) bool {
	return v.Action == verdict.Accept && (!v.Match.IsZero() ||
		slices.ContainsFunc(v.Matches, func(m verdict.Match) bool { return m.Allow && m.Unproven && v.Proofs == nil }))
}

// formJudge judges the readings of one form, and keeps the strictest verdict.
type formJudge struct {
	asker   asker
	senders *HeaderSenders
	beside  bool
	reading verdict.Reading
	finding verdict.Finding
	matched bool
}

// ask judges one reading. If neither it nor a parent is an address, ask does nothing.
func (r *formJudge) ask(address string) {
	v, err := r.senders.ask(r.asker, r.reading, address)
	if err != nil && !errors.Is(err, verdict.ErrNoAnswer) {
		return
	}
	if v.Match.IsZero() && len(v.Monitored) == 0 && err == nil {
		return
	}
	monitored := r.finding.Verdict.Monitored
	if free := maxLines - len(monitored); free > 0 {
		monitored = append(monitored, v.Monitored[:min(free, len(v.Monitored))]...)
	}
	if !r.matched || v.Action > r.finding.Verdict.Action {
		r.finding.Address, r.finding.Verdict, r.finding.Err = address, v, err
	}
	r.finding.Verdict.Monitored = monitored
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
		at := strings.LastIndexByte(address, '@')
		if !strings.ContainsAny(address[:at], "%!") || !r.senders.isLocal(address[at+1:]) {
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
