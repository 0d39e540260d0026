package smtpfilter

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/text"
	"spamgate/smtpfilter/header"
)

// HeaderSenders are the senders that a header section names, and what servers may
// make senders of.
type HeaderSenders struct {
	header.Result

	policy  *Policy
	nextHop []string            // its names
	added   []string            // see names
	local   map[string]struct{} // see isLocal
	domains domainSet           // of the policy, likewise
	cost    int                 // of what was looked up so far

	// besideCost is that of the domains put behind words beside an address, which is
	// counted apart.
	besideCost int
}

// FieldsWithoutAddress names the fields that are there and hold no address.
func (s *HeaderSenders) FieldsWithoutAddress() []string {
	fields := slices.Clone(s.Empty)
	for _, form := range s.Forms {
		if form.Beside {
			continue // the field holds an address
		}
		named := func(a header.Sender) bool { return a.Field == form.Field }
		if !slices.Contains(fields, form.Field) && !slices.ContainsFunc(s.Senders, named) {
			fields = append(fields, form.Field)
		}
	}
	return fields
}

// maxNames is how many domains are put behind a local part. With all of them a
// field of some 25 words, and no address, costs maxCost.
const maxNames = 200

// maxCost bounds what the lookups for one header cost. The unit is about a
// nanosecond: a thousand addresses cost about a million.
const (
	maxCost       = 6_000_000
	costPerLookup = 512
	costPerKey    = 64  // and one for each byte
	costOfFolding = 192 // for each byte of a part that is not all ASCII
	costOfIDNA    = 64  // likewise
)

// maxBesideCost bounds what is spent on domains behind words beside an address, which
// are most likely parts of names. With more of them no more domains are put behind, and
// the header is not refused for it.
const maxBesideCost = maxCost / 2

// costOf returns what looking up an address costs: four keys with its local part,
// and two for each label, of half the domain's length in the mean, after both parts
// are normalised.
func costOf(address string) int {
	at := strings.LastIndexByte(address, '@')
	domain := address[at+1:]
	labels := strings.Count(domain, ".") + 1
	cost := costPerLookup + costPerKey*(4+2*labels) + 3*at + labels*min(len(domain), sender.MaxDomain)
	if !text.IsASCII(address[:at]) {
		cost += costOfFolding * at
	}
	if !text.IsASCII(domain) {
		cost += costOfIDNA * len(domain)
	}
	return cost
}

// ReadHeader reads the senders of a header section: the lines up to and without
// the empty line, dot-unstuffed. The next hop's names are those with which it
// greets.
func (p *Policy) ReadHeader(section []byte, nextHop []string) *HeaderSenders {
	return &HeaderSenders{
		Result:  header.SendersUpTo(section, p.HeaderFields, p.AddressLimit()),
		policy:  p,
		nextHop: nextHop,
	}
}

// names returns the domains that servers may put behind a local part. Few headers
// need them.
func (s *HeaderSenders) names() []string {
	if s.added == nil {
		s.added = s.policy.completions(s.nextHop)
	}
	return s.added
}

// TooMany reports whether the header names more senders than are judged, or was too
// costly to judge as JudgeHeader has found. It is to be refused then.
func (s *HeaderSenders) TooMany() bool { return s.Result.TooMany || s.cost > maxCost }

// ask looks up an address, or says that it was not looked up because it would cost
// too much.
func (s *HeaderSenders) ask(a asker, reading verdict.Reading, address string) (verdict.Verdict, error) {
	if s.cost += costOf(address); s.cost > maxCost {
		return verdict.Verdict{}, errTooManyAddresses
	}
	return a.ask(verdict.Query{Stage: verdict.Header, Address: address, Reading: reading})
}

// completions returns the domains that servers may put behind a local part: the
// names of the next hop, the domains above them, and the recipient domains.
func (p *Policy) completions(nextHop []string) []string {
	var names []string
	add := func(name string) {
		if len(names) < maxNames && strings.Contains(name, ".") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range nextHop {
		add(name)
		_, above, _ := strings.Cut(name, ".")
		add(above)
	}
	known := len(names)
	for _, d := range p.RecipientDomains { // each is there once
		if len(names) == maxNames {
			break
		}
		if d = strings.TrimPrefix(d, "."); !slices.Contains(names[:known], d) {
			names = append(names, d)
		}
	}
	return names
}

// incomplete reports whether servers may put a domain behind an address: "user@",
// or "user@host" without a dot.
func incomplete(address string) bool {
	domain := address[strings.LastIndexByte(address, '@')+1:]
	return !strings.ContainsAny(domain, ".[:")
}

// JudgeHeader judges every address that a header names, and every form that
// servers may make an address of. Whether that is right for a message is for
// JudgesHeader to say.
//
// An address gives a finding. Where it can't be one because of what stands before
// its domain (x@*.listed.example), the first parent that can be one is judged in
// its place, so that nonsense does not hide a listed domain.
//
// A form gives a finding, too: of the address that the strictest entry names, else
// of the first that it may be. An address may be a form besides: servers complete
// user@host, and take user%host@domain for user@host if the domain is theirs.
// That gives a finding only if an entry matches. Forms are looked up as ReadForm
// or ReadWord, so that they block and never allow. Words beside addresses that
// allow entries let in, all those of the field, are looked up as ReadName.
//
// With TooMany there are no more findings.
func (p *Policy) JudgeHeader(ctx context.Context, j verdict.Judge, m *verdict.Message, s *HeaderSenders) iter.Seq[verdict.Finding] {
	return func(yield func(verdict.Finding) bool) {
		m.HeaderSenders = s.Senders
		ask := asker{ctx, j, m}
		open := make(map[string]bool) // fields with an address that no allow entry lets in
		for _, a := range s.Senders {
			if s.TooMany() {
				return
			}
			f := verdict.Finding{Identity: a.Field, Address: a.Address}
			f.Verdict, f.Err = s.ask(ask, verdict.ReadAddress, a.Address)
			if f.Err != nil && !f.NoAnswer() {
				if v, err, ok := s.judgeParents(ask, a.Address); ok {
					f.Verdict, f.Err = v, err
				}
			}
			if f.Verdict.Action != verdict.Accept || f.Verdict.Match.IsZero() {
				open[a.Field] = true
			}
			if !yield(f) {
				return
			}
			r := formJudge{asker: ask, senders: s, finding: verdict.Finding{Identity: a.Field, Form: a.Address}}
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
			r := formJudge{asker: ask, senders: s, beside: form.Beside, allowed: !open[form.Field],
				finding: verdict.Finding{Identity: form.Field, Address: readings[0], Form: form.Text}}
			for _, address := range readings {
				r.ask(address)
				r.complete(address)
				r.routes(address)
			}
			if !yield(r.finding) {
				return
			}
		}
	}
}

// formJudge judges what servers may make of one form, and keeps the strictest
// verdict.
type formJudge struct {
	asker   asker
	senders *HeaderSenders
	beside  bool
	allowed bool // with all addresses of its field, where it is beside them
	finding verdict.Finding
	matched bool
}

// ask judges an address that the form may be. One that is none says nothing, but
// for its parents.
func (r *formJudge) ask(address string) {
	reading := verdict.ReadForm
	if r.beside {
		reading = verdict.ReadWord
		if r.allowed {
			reading = verdict.ReadName
		}
	}
	v, err := r.senders.ask(r.asker, reading, address)
	if err != nil && !errors.Is(err, verdict.ErrNoAnswer) {
		parent, ok := r.senders.plausible(address)
		if !ok {
			return
		}
		v, err = r.senders.ask(r.asker, reading, parent)
	}
	if err != nil && !errors.Is(err, verdict.ErrNoAnswer) {
		return
	}
	if v.Match.IsZero() && len(v.Monitored) == 0 && err == nil {
		return
	}
	monitored := r.finding.Verdict.Monitored
	if room := maxLines - len(monitored); room > 0 {
		monitored = append(monitored, v.Monitored[:min(room, len(v.Monitored))]...)
	}
	if !r.matched || v.Action > r.finding.Verdict.Action {
		r.finding.Address, r.finding.Verdict, r.finding.Err = address, v, err
	}
	r.finding.Verdict.Monitored = monitored
	r.matched = true
}

// complete judges an address with each domain behind it that a server may add.
func (r *formJudge) complete(address string) {
	if !incomplete(address) {
		return
	}
	if !strings.HasSuffix(address, "@") {
		address += "."
	}
	for _, name := range r.senders.names() {
		if r.senders.TooMany() || r.beside && r.senders.besideCost > maxBesideCost {
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

// routes judges what a server makes of user%host@domain and host!user@domain if
// the domain is its own.
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
			if strings.HasSuffix(route, "@") || r.beside {
				continue
			}
			r.complete(route)
		}
		if len(readings) == 0 {
			return
		}
		address = readings[0]
	}
}

// maxRoutes bounds how often a route leads to the server itself.
const maxRoutes = 4

// isLocal reports whether a server may take a domain for its own. The first labels of
// its names count, too.
func (s *HeaderSenders) isLocal(domain string) bool {
	s.cost += costPerLookup
	if !text.IsASCII(domain) {
		s.cost += costOfIDNA * len(domain)
	}
	d, err := sender.NormalizeDomain(domain)
	if err != nil {
		return false
	}
	if s.local == nil {
		s.local = make(map[string]struct{}, 2*len(s.names()))
		for _, name := range s.names() {
			label, _, _ := strings.Cut(name, ".")
			s.local[name], s.local[label] = struct{}{}, struct{}{}
		}
		s.domains = s.policy.domainSet()
	}
	_, ok := s.local[d]
	return ok || s.domains.has(d)
}

// judgeParents judges the first parent of an address's domain with which it is
// an address. The error is ErrNoAnswer alone.
func (s *HeaderSenders) judgeParents(a asker, address string) (verdict.Verdict, error, bool) {
	parent, ok := s.plausible(address)
	if !ok {
		return verdict.Verdict{}, nil, false
	}
	v, err := s.ask(a, verdict.ReadAddress, parent)
	return v, err, err == nil || errors.Is(err, verdict.ErrNoAnswer)
}

// plausible is the function plausible, which costs as much as looking up the address,
// and says nothing where that would be too much.
func (s *HeaderSenders) plausible(address string) (string, bool) {
	if s.cost += costOf(address); s.cost > maxCost {
		return "", false
	}
	return plausible(address)
}

// plausible returns an address with the longest parent of its domain that can be
// one, and with its local part in normal form, or the empty one in the place of what
// cannot be a local part. Each label is looked at once.
func plausible(address string) (string, bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return "", false
	}
	local, domain := address[:at], address[at+1:]
	if normal, err := sender.NormalizeLocal(local); err == nil {
		local = normal
	} else {
		local = `""`
	}
	start, length := len(domain), 0
	for rest := domain; rest != ""; {
		dot := strings.LastIndexByte(rest, '.')
		label, err := sender.NormalizeDomain(rest[dot+1:])
		if length += len(label) + len("."); err != nil || length-len(".") > sender.MaxDomain {
			break
		}
		start, rest = dot+1, rest[:max(dot, 0)]
	}
	if start == len(domain) {
		return "", false
	}
	return local + "@" + domain[start:], true
}
