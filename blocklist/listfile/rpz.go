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
	origin string // what relative names are relative to, without a final dot
	apex   string // the name of the zone
	known  bool   // the zone's name is
	owner  string // of the last record
	first  int    // number of the first line of what is inside parentheses
	inside string

	// held is the last entry, an exact name. Where the next record says the
	// same of its subdomains the two are one entry for both.
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

// cutZoneComment cuts off a comment, and counts how many parentheses are open.
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
		z.put(o, line, text, Entry{}, unsupported{what: "a directive that is not followed", hint: "write the records out"})
		return
	}
}

// absolute returns a name with the origin, without a final dot.
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
	errNoRecord = errors.New("no record of a zone; a line reads \"example.com CNAME .\"")
	errOutside  = errors.New("a name outside the zone")
	errAnswer   = unsupported{what: "an answer of its own, which blocks nothing here", hint: "a zone that blocks writes CNAME ."}
	errTCP      = unsupported{what: "rpz-tcp-only, which blocks nothing", spares: true}
)

// record deals with what follows the owner: [TTL] [class] type data.
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

// isTTL reports whether a field is a time to live: digits, with units perhaps.
func isTTL(s string) bool {
	return s[0] >= '0' && s[0] <= '9' && strings.Trim(s, "0123456789smhdwSMHDW") == ""
}

// policy reads what a record says of its owner.
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
	case strings.ToLower(name) + ".": // the obsolete form; a wildcard's target stands for names below another one
		if e.Kind == sender.KindAtDomain {
			return o.judged(e, true)
		}
	case "rpz-tcp-only.":
		return e, errTCP
	case "*", "rpz-drop", "rpz-passthru", "rpz-tcp-only":
		return e, fmt.Errorf("the target %s has no dot behind it; write \"%[1]s.\"", target)
	}
	return e, errAnswer
}

// trigger returns the owner within the zone: the name that the policy is about.
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

// cutSuffixFold cuts a zone's name off, whatever the case.
func cutSuffixFold(name, zone string) (string, bool) {
	at := len(name) - len(zone)
	if at < 0 || !strings.EqualFold(name[at:], zone) || at > 0 && name[at-1] != '.' {
		return name, false
	}
	return name[:at], true
}

// put passes an entry on, after what is held back; an exact name it holds back.
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

// pairs reports whether e, for subdomains, says what the entry held back says
// of their parent. It stands in the next line.
func (z *zone) pairs(e Entry) bool {
	h := z.held
	return e.Key[2:] == h.Key[1:] && e.Exception == h.Exception && e.Until == h.Until &&
		e.Reason == h.Reason && e.Note == h.Note && e.Line == h.Line+1
}

func (z *zone) flush(o *output) {
	if !z.holding {
		return
	}
	z.holding = false
	o.put(z.held.Line, z.heldText, z.held, nil)
}

func (z *zone) refuse(o *output, line int, p Problem) {
	z.flush(o)
	o.refuse(line, p)
}

// end deals with what is left over.
func (z *zone) end(o *output) {
	z.flush(o)
	if z.first != 0 {
		o.refuse(z.first, Problem{Text: z.inside, What: "a parenthesis that is never closed", Hint: "close it"})
		z.first, z.inside = 0, ""
	}
}
