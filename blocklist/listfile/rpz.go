package listfile

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

// zone reads a response policy zone (draft-vixie-dnsop-dns-rpz) as a master file
// (RFC 1035, section 5).
type zone struct {
	origin string // the suffix of relative names, without a final dot
	apex   string // the name of the zone, if it is known
	known  bool
	owner  string // the owner of the last record
	first  int    // number of the line that opened a parenthesis; 0 means none is open
	inside string // the text since then

	// held is the last entry, if it is an exact name. If the next record says the
	// same of its subdomains, the two become one entry.
	held     Entry
	heldText string
	holding  bool
}

func (z *zone) line(o *output, line int, text string) {
	data, comment, open := cutZoneComment(text)
	if z.first != 0 {
		data = z.inside + " " + data
		open += strings.Count(z.inside, "(") - strings.Count(z.inside, ")")
		line = z.first
	}
	if open > 0 {
		if len(data) > MaxLine {
			z.first, z.inside = 0, ""
			z.refuse(o, line, tooLong(data))
			return
		}
		z.first, z.inside = line, data
		return
	}
	z.first, z.inside = 0, ""
	if strings.ContainsAny(data, "()") {
		data = withoutParentheses.Replace(data)
	}
	fields := strings.Fields(data)
	if len(fields) == 0 {
		return
	}
	if strings.HasPrefix(data, "$") {
		z.directive(o, line, data, fields)
		return
	}
	if data[0] != ' ' && data[0] != '\t' {
		z.owner = z.absolute(fields[0])
		fields = fields[1:]
	}
	z.record(o, line, trim(data), fields, comment)
}

var withoutParentheses = strings.NewReplacer("(", " ", ")", " ")

// cutZoneComment cuts off a comment, and counts the parentheses that are open.
func cutZoneComment(s string) (data, comment string, open int) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			return s[:i], strings.TrimLeft(s[i:], ";"), open
		case c == '(':
			open++
		case c == ')':
			open--
		}
	}
	return s, "", open
}

func (z *zone) directive(o *output, line int, text string, fields []string) {
	switch {
	case strings.EqualFold(fields[0], "$ORIGIN") && len(fields) > 1:
		z.origin = z.absolute(fields[1])
		if !z.known {
			z.apex, z.known = z.origin, true
		}
	case strings.EqualFold(fields[0], "$TTL"):
	default:
		z.put(o, line, text, Entry{}, unsupported{what: "a directive that is not supported", hint: "write the records out"})
		return
	}
}

// absolute returns a name with the origin and without a final dot.
func (z *zone) absolute(name string) string {
	switch {
	case name == "@":
		return z.origin
	case strings.HasSuffix(name, "."):
		return strings.TrimSuffix(name, ".")
	case z.origin == "":
		return name
	}
	return name + "." + z.origin
}

var (
	errNoRecord = errors.New("not a record of a zone; a line reads \"example.com CNAME .\"")
	errOutside  = errors.New("a name outside the zone")
	errAnswer   = unsupported{what: "another answer, which blocks nothing here", hint: "a zone that blocks writes CNAME ."}
	errTCP      = unsupported{what: "rpz-tcp-only, which blocks nothing", spares: true}
)

// record reads what follows the owner: [TTL] [class] type data.
func (z *zone) record(o *output, line int, text string, fields []string, comment string) {
	for len(fields) > 0 && (isTTL(fields[0]) || strings.EqualFold(fields[0], "IN")) {
		fields = fields[1:]
	}
	if len(fields) < 2 {
		z.put(o, line, text, Entry{}, errNoRecord)
		return
	}
	switch kind := strings.ToUpper(fields[0]); kind {
	case "SOA":
		z.apex, z.known = z.owner, true
		if z.origin == "" {
			z.origin = z.owner
		}
	case "NS", "TXT", "RRSIG", "NSEC", "NSEC3", "NSEC3PARAM", "DNSKEY", "DS", "MX", "SRV", "HINFO", "CAA":
		o.remark(noteRecord, line, text)
	case "CNAME", "A", "AAAA", "DNAME":
		e, err := z.policy(o, kind, fields[1])
		if err == nil {
			e, err = commented(e, comment)
		}
		z.put(o, line, text, e, err)
		return
	default:
		z.put(o, line, text, Entry{}, errNoRecord)
		return
	}
}

// isTTL reports whether a field is a time to live: digits, perhaps with units.
func isTTL(s string) bool {
	return s[0] >= '0' && s[0] <= '9' && strings.Trim(s, "0123456789smhdwSMHDW") == ""
}

// policy returns the entry of a record.
func (z *zone) policy(o *output, kind, target string) (Entry, error) {
	name, err := z.trigger()
	if err != nil {
		return Entry{}, err
	}
	e, err := o.starred(name, o.exactly)
	if err != nil {
		return e, err
	}
	if kind != "CNAME" {
		if addr, err := netip.ParseAddr(target); err == nil && isSinkhole(addr) {
			return o.judged(e, false)
		}
		return e, errAnswer
	}
	switch target := strings.ToLower(target); target {
	case ".", "*.", "rpz-drop.":
		return o.judged(e, false)
	case "rpz-passthru.":
		return o.judged(e, true)
	case strings.ToLower(name) + ".": // the obsolete form; a wildcard's target means names below another one
		if e.Kind == sender.KindAtDomain {
			return o.judged(e, true)
		}
	case "rpz-tcp-only.":
		return withSubdomains(e), errTCP
	case "*", "rpz-drop", "rpz-passthru", "rpz-tcp-only":
		return e, fmt.Errorf("the target %s has no final dot; write \"%[1]s.\"", target)
	}
	return e, errAnswer
}

// trigger returns the owner without the zone: the name that the policy is for.
func (z *zone) trigger() (string, error) {
	name := z.owner
	if z.known && z.apex != "" {
		within, ok := cutSuffixFold(name, z.apex)
		if !ok {
			return "", errOutside
		}
		name = strings.TrimSuffix(within, ".")
	}
	switch {
	case name == "":
		return "", errNoRecord
	case name == "*":
		return "", errEverything
	}
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	if slices.Contains([]string{"rpz-ip", "rpz-client-ip", "rpz-nsip"}, last) {
		return "", errClient
	}
	if last == "rpz-nsdname" {
		return "", unsupported{what: "a rule about name servers"}
	}
	return name, nil
}

// cutSuffixFold cuts off a zone's name, ignoring case.
func cutSuffixFold(name, zone string) (string, bool) {
	pos := len(name) - len(zone)
	if pos < 0 || !strings.EqualFold(name[pos:], zone) || pos > 0 && name[pos-1] != '.' {
		return name, false
	}
	return name[:pos], true
}

// put passes an entry on, after the held one. It holds an exact name.
func (z *zone) put(o *output, line int, text string, e Entry, err error) {
	e.Line = line
	if err == nil && z.holding && e.Kind == sender.KindSubdomains && z.pairs(e) && !o.options.Exact {
		e = z.held
		e.Kind, e.Key = sender.KindDomain, e.Key[1:]
		z.holding = false
		o.put(e.Line, z.heldText, e, nil)
		return
	}
	z.flush(o)
	if err == nil && e.Kind == sender.KindAtDomain {
		z.held, z.heldText, z.holding = e, text, true
		return
	}
	o.put(line, text, e, err)
}

// pairs reports whether e, for subdomains, stands in the line after the held entry
// and says the same of their parent.
func (z *zone) pairs(e Entry) bool {
	h := z.held
	return e.Key[2:] == h.Key[1:] && e.Exception == h.Exception && e.Until == h.Until &&
		e.Reason == h.Reason && e.Note == h.Note && e.Line == h.Line+1
}

// flush passes on the held entry. A wildcard does not cover a name of the zone, nor
// what is below that name (RFC 4592, section 3.3.1): so a name that is let through is
// an exception with its subdomains. For names that block, see [Format].
func (z *zone) flush(o *output) {
	if !z.holding {
		return
	}
	z.holding = false
	e := z.held
	if e.Exception {
		e = withSubdomains(e)
	}
	o.put(e.Line, z.heldText, e, nil)
}

// withSubdomains returns an entry for a name alone as one for the name with its
// subdomains.
func withSubdomains(e Entry) Entry {
	if e.Kind == sender.KindAtDomain {
		e.Kind, e.Key = sender.KindDomain, e.Key[1:]
	}
	return e
}

// refuse reports a line, after the held entry.
func (z *zone) refuse(o *output, line int, p Problem) {
	z.flush(o)
	o.refuse(line, p)
}

// end passes on the held entry and reports an open parenthesis.
func (z *zone) end(o *output) {
	z.flush(o)
	if z.first != 0 {
		o.refuse(z.first, Problem{Text: z.inside, What: "a parenthesis that is never closed", Hint: "close it"})
		z.first, z.inside = 0, ""
	}
}
