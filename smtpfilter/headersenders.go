package smtpfilter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/text"
	"spamgate/smtpfilter/header"
	"spamgate/smtpfilter/wire"
)

// HeaderSenders are the senders in a header section, and the forms that servers may turn
// into senders.
type HeaderSenders struct {
	header.Result

	policy  *Policy
	nextHop []string            // the next hop's names
	added   []string            // see completions
	local   map[string]struct{} // see isLocal
	domains *DomainSet          // of the policy, for isLocal
	finding verdict.Finding     // about the sender that is judged, see headerJudge
	cost    int                 // of the lookups so far
	limit   int                 // of the cost

	// besideCost is the cost of completing words beside an address. It is not part of
	// cost.
	besideCost int
}

// ReadHeader reads the senders of a header section: the lines before the empty line, without
// dot-stuffing. The next hop's names are those in its greetings.
func (p *Policy) ReadHeader(section []byte, nextHop []string) *HeaderSenders {
	return &HeaderSenders{
		Result:  header.SendersUpTo(section, p.HeaderFields, p.AddressLimit()),
		policy:  p,
		limit:   maxCost,
		nextHop: nextHop,
	}
}

// FieldsWithoutAddress returns the names of the fields that exist and have no address.
func (s *HeaderSenders) FieldsWithoutAddress() []string {
	fields := slices.Clone(s.Empty)
	for _, form := range s.Forms {
		if form.Beside {
			continue // the field has an address
		}
		hasField := func(a header.Sender) bool { return a.Field == form.Field }
		if !slices.Contains(fields, form.Field) && !slices.ContainsFunc(s.Senders, hasField) {
			fields = append(fields, form.Field)
		}
	}
	return fields
}

// maxCompletions bounds the domains that complete a local part. With all of them a field of
// about 25 words without an address costs maxCost.
const maxCompletions = 200

// maxCost bounds the cost of the lookups for one header. The unit is about a nanosecond: a
// thousand addresses cost about a million.
const (
	maxCost       = 6_000_000
	costPerLookup = 512
	costPerKey    = 64  // plus 1 for each byte
	costOfFolding = 192 // for each byte of a part that is not ASCII
	costOfIDNA    = 64  // likewise
)

// maxCostly bounds the cost for all classes of recipients together, as a multiple of maxCost: about
// a second, for a message to hundreds of recipients who each have entries of their own.
const maxCostly = 200

// begin begins the lookups for the i-th class of recipients.
//
// Completing words beside an address, which are most likely parts of names, may cost half of the
// limit. Beyond that they are no longer completed; the header is not refused.
func (s *HeaderSenders) begin(i int) {
	if i == 0 {
		s.cost, s.besideCost = 0, 0
	}
	s.limit = maxCost * min(i+1, maxCostly)
}

// costOf returns the cost of looking up an address: four keys with its local part, and two
// for each label with half of the domain's length on average, after normalizing both parts.
func costOf(address string) int {
	pos := strings.LastIndexByte(address, '@')
	domain := address[pos+1:]
	labels := strings.Count(domain, ".") + 1
	cost := costPerLookup + costPerKey*(4+2*labels) + 3*pos + labels*min(len(domain), sender.MaxDomain)
	if !text.IsASCII(address[:pos]) {
		cost += costOfFolding * pos
	}
	if !text.IsASCII(domain) {
		cost += costOfIDNA * len(domain)
	}
	return cost
}

// TooMany reports whether the header has more senders than are judged, or JudgeHeader found
// it too costly to judge. Then it is refused.
func (s *HeaderSenders) TooMany() bool { return s.Result.TooMany || s.cost > s.limit }

// ask looks up an address, and sets the verdict and the error of a finding. If it is not an
// address, ask looks up the address with the first parent of its domain that makes one. The error
// says that neither was one, that the lists could not be asked, or that the lookup would cost too
// much.
func (s *HeaderSenders) ask(a *asker, reading verdict.Reading, address string, f *verdict.Finding) {
	s.askOnce(a, reading, address, f)
	if f.Err == nil || noAnswer(f) {
		return
	}
	if s.cost += costOf(address); s.cost > s.limit {
		return
	}
	if parent, ok := plausible(address); ok {
		s.askParent(a, reading, parent, f)
	}
}

// askParent looks up the parent of what is not an address.
func (s *HeaderSenders) askParent(a *asker, reading verdict.Reading, parent string, f *verdict.Finding) {
	var finding verdict.Finding
	if s.askOnce(a, reading, parent, &finding); finding.Err == nil || noAnswer(&finding) {
		f.Verdict = finding.Verdict
		f.Err = finding.Err
	}
}

// askOnce looks up an address if that does not cost too much.
func (s *HeaderSenders) askOnce(a *asker, reading verdict.Reading, address string, f *verdict.Finding) {
	if s.cost += costOf(address) * (1 + len(a.to.Others)); s.cost > s.limit {
		f.Verdict = verdict.Verdict{}
		f.Err = ErrTooManyAddresses
		return
	}
	a.ask(&verdict.Query{Stage: verdict.Header, Address: address, Reading: reading}, f)
}

// plausible returns an address with the longest parent of its domain that is a domain. The
// local part is in normal form, or empty if it is not one. plausible looks at each label
// once.
func plausible(address string) (string, bool) {
	pos := strings.LastIndexByte(address, '@')
	if pos < 0 {
		return "", false
	}
	local, err := sender.NormalizeLocal(address[:pos])
	if err != nil {
		local = `""`
	}
	domain := address[pos+1:]
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

// completions returns the domains with which servers may complete a local part: the names of
// the next hop, the domains above them, and the recipient domains. Few headers need them.
func (s *HeaderSenders) completions() []string {
	if s.added != nil {
		return s.added
	}
	var names []string
	for _, name := range s.nextHop {
		_, above, _ := strings.Cut(name, ".")
		for _, n := range []string{name, above} {
			if len(names) < maxCompletions && strings.Contains(n, ".") && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	ofNextHop := len(names)
	for _, d := range s.policy.domainSet().Names() { // each is there once
		if len(names) == maxCompletions {
			break
		}
		if d = strings.TrimPrefix(d, "."); !slices.Contains(names[:ofNextHop], d) {
			names = append(names, d)
		}
	}
	s.added = names
	return names
}

// isLocal reports whether a server may take a domain for its own. That includes the first
// labels of its names.
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
		s.local = map[string]struct{}{}
		for _, name := range s.completions() {
			label, _, _ := strings.Cut(name, ".")
			s.local[name], s.local[label] = struct{}{}, struct{}{}
		}
		s.domains = s.policy.domainSet()
	}
	_, ok := s.local[d]
	return ok || s.domains.has(d)
}

// HeaderFault says why a message is refused because of the form of its header section, whoever
// the senders are.
type HeaderFault struct {
	Err  error  // for the log
	text string // of the reply
}

// Reply returns the reply to a message with an id.
func (f *HeaderFault) Reply(id string) wire.Reply { return wire.NewReply(554, f.text+"; id "+id) }

var (
	errTooManyHops = errors.New("too many Received fields: a mail loop")
	errFieldLong   = errors.New("a header field that is checked is longer than max_field_bytes allows")
	errLineLong    = errors.New("a line in a header field that is checked is longer than RFC 5322 allows")
)

// ErrTooManyAddresses says why a header was refused, or a sender not looked up, for the log.
var ErrTooManyAddresses = errors.New("more sender addresses in the header than max_addresses allows")

// RefusalOfBytes returns the reply to a message with an id that breaks a rule of wire's about its
// bytes or its size, or the zero Reply. It may have most bytes.
func (p *Policy) RefusalOfBytes(cause error, most int64, id string) wire.Reply {
	switch {
	case errors.Is(cause, wire.ErrBareNewline), errors.Is(cause, wire.ErrNUL):
		return wire.NewReply(550, fmt.Sprintf("5.5.2 Refused: %v; id %s", cause, id))
	case errors.Is(cause, wire.ErrTooLarge):
		return tooLarge(most)
	case errors.Is(cause, wire.ErrHeaderTooLarge):
		return wire.NewReply(552, fmt.Sprintf("5.3.4 Header section larger than %d bytes", p.HeaderLimit()))
	}
	return wire.Reply{}
}

// Loop returns the fault of a header section with too many Received fields, or nil.
func (p *Policy) Loop(section []byte) *HeaderFault {
	hops := countReceived(section)
	if hops <= p.maxHops() {
		return nil
	}
	// RFC 5321, section 6.3; RFC 3463: X.4.6, routing loop detected.
	return &HeaderFault{errTooManyHops, fmt.Sprintf("5.4.6 Too many hops (%d Received fields)", hops)}
}

// maxLine bounds a line of a field whose senders are judged, without its end (RFC 5322, section
// 2.1.1). Postfix inserts a line break and a space after so many bytes, also within an address,
// and cuts off what a field has beyond its header_size_limit. Then readers would see another
// sender than the gate.
const maxLine = 998

// Fault returns why the header cannot be judged, or nil. It counts once JudgeHeader has ended,
// and not if every recipient is exempt. RFC 3463: X.6.0, other or undefined media error.
func (s *HeaderSenders) Fault() *HeaderFault {
	most, field, line := s.policy.FieldLimit(), s.LongestField, s.LongestLine
	switch {
	case field.Bytes > most:
		return &HeaderFault{errFieldLong, fmt.Sprintf("5.6.0 Header field %s too long: %d bytes (limit %d)", field.Field, field.Bytes, most)}
	case line.Bytes > maxLine:
		return &HeaderFault{errLineLong, fmt.Sprintf("5.6.0 Header field %s has a line of %d bytes (limit %d)", line.Field, line.Bytes, maxLine)}
	case s.TooMany():
		return &HeaderFault{ErrTooManyAddresses, fmt.Sprintf("5.6.0 Too many or too complex sender addresses in the header (limit %d)", s.policy.AddressLimit())}
	}
	return nil
}
