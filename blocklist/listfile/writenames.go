package listfile

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"spamgate/blocklist/sender"
)

// Formats that list domains: a dnset of rbldnsd, a response policy zone, and a map of
// rspamd, which has addresses, too.

var (
	errDomains = errors.New("it is not about a domain alone")
	errName    = errors.New("the domain is not a name that a zone can have")
	errMap     = errors.New("an rspamd map has no exceptions")
	errPattern = errors.New("its local part could be read as a pattern")
)

// maxName is the longest name that a zone is given. A server refuses a whole zone with
// a name of more than 255 bytes, of which the zone's own name is a part.
const maxName = 180

// carriesName returns an error for an entry that is not for a domain that a zone can
// have.
func carriesName(e Entry) error {
	if !isDomain(e.Kind) {
		return errDomains
	}
	if !isZoneName(nameOf(e.Key)) {
		return errName
	}
	return carriesComment(e)
}

// isZoneName reports whether a domain can be the owner of a record: letters, digits,
// hyphens and underscores, in labels of at most 63 bytes (RFC 1035, section 2.3.4).
// Other characters have a meaning in some master files. The last label of an IP address
// or of a special trigger of a response policy zone has a meaning, too.
func isZoneName(name string) bool {
	if len(name) > maxName {
		return false
	}
	label := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.':
			label = 0
			continue
		case c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z'):
			return false
		}
		if label++; label > 63 {
			return false
		}
	}
	return !isIP(name) && !strings.HasPrefix(name[strings.LastIndexByte(name, '.')+1:], "rpz-")
}

// dnsetText returns lines of a dnset. rbldnsd looks for the name itself, then for the
// closest domain above it that has an entry for its subdomains.
func dnsetText(l *listWriter, name string) string {
	entry, here := l.at(name)
	below, more := l.below(name)
	if here && more && entry.Key == below.Key {
		return dnsetLine("."+name, entry)
	}
	text := ""
	if here {
		text = dnsetLine(name, entry)
	}
	if more {
		text += dnsetLine("*."+name, below)
	}
	return text
}

func dnsetLine(pattern string, e Entry) string {
	if e.Exception {
		return "!" + pattern + "\n"
	}
	if reason := publicText(e.Reason); reason != "" {
		pattern += " :127.0.0.2:" + strings.ReplaceAll(reason, "$", "$$")
	}
	return pattern + "\n"
}

// maxPublic is the length of a reason in a format that shows it to strangers.
const maxPublic = 200

// publicText returns a reason as printable ASCII.
func publicText(s string) string {
	printable := func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}
	s = strings.Map(printable, cleanText(s))
	return strings.TrimSpace(s[:min(len(s), maxPublic)])
}

func (o WriteOptions) zoneForm() form {
	listed := "."
	if o.Allow {
		listed = "rpz-passthru."
	}
	return form{
		start:   fmt.Sprintf("$TTL 1h\n%s%d%s  NS localhost.\n", zoneStart, o.Serial, zoneTimes),
		carries: carriesName,
		domain:  func(l *listWriter, name string) string { return zoneText(l, name, listed) },
	}
}

// The SOA record has the serial number between these.
const (
	zoneStart = "@ SOA localhost. hostmaster.localhost. ( "
	zoneTimes = " 1h 15m 30d 2h )\n"
)

// zoneText returns the records for a domain and its subdomains, and for the domains
// above it that have none of their own.
//
// A record makes its name and the names above it exist. For an existing name, and for
// names below it, the wildcards above it no longer count (RFC 4592, section 2.2.1). So
// what they refuse is said again.
func zoneText(l *listWriter, name, listed string) string {
	if !isZoneName(name) {
		return ""
	}
	entry, here := l.at(name)
	below, more := l.below(name)
	above, inherits := l.inherited(name)
	inherits = inherits && !above.Exception
	if !here {
		entry, here = above, inherits
	}
	if !more {
		below, more = above, inherits
	}
	var text string
	if here {
		text = zoneRecord(name, entry, listed)
	}
	if more {
		text += zoneRecord("*."+name, below, listed)
	}
	if text == "" {
		return ""
	}
	for p := parentOf(name); p != "" && inherits && !l.filled[p] && !l.owns(p); p = parentOf(p) {
		if above, inherits = l.inherited(p); inherits && !above.Exception {
			l.filled[p] = true
			text += zoneRecord(p, above, listed) + zoneRecord("*."+p, above, listed)
		}
	}
	return text
}

// owns reports whether the list has an entry for a domain or its subdomains.
func (l *listWriter) owns(name string) bool {
	_, found := l.milder["@"+name]
	_, below := l.milder["*."+name]
	return found || below || l.first(name) != ""
}

func zoneRecord(owner string, e Entry, listed string) string {
	if e.Exception {
		listed = "rpz-passthru."
	}
	record := owner + " CNAME " + listed
	if reason := strings.TrimLeft(withoutMarks(withoutUntil(e.Reason)), "; "); reason != "" {
		record += " ; " + reason
	}
	return record + "\n"
}

const rspamdStart = `# A map of rspamd for the module multimap: type = "from"; filter = "email:addr"; regexp = true;
`

// carriesMap returns an error for an entry that an rspamd map cannot have.
func carriesMap(e Entry) error {
	switch {
	case e.Exception:
		return errMap
	case e.Kind != sender.KindAddress:
		return carriesName(e)
	case strings.Trim(e.Key[:strings.LastIndexByte(e.Key, '@')], "abcdefghijklmnopqrstuvwxyz0123456789._+=-") != "":
		return errPattern
	case !isZoneName(e.Key[strings.LastIndexByte(e.Key, '@')+1:]):
		return errName
	}
	return carriesComment(e)
}

// mapEntry returns the line of an address. One without a tag is for all tags; what
// softens it is no line.
func mapEntry(e Entry) string {
	if e.Exception {
		return ""
	}
	pos := strings.LastIndexByte(e.Key, '@')
	local, domain := regexp.QuoteMeta(e.Key[:pos]), regexp.QuoteMeta(e.Key[pos:])
	if !strings.Contains(e.Key[1:pos], "+") {
		local += `(\+[^@]*)?`
	}
	return "/^" + local + domain + "$/i\n"
}

// mapText returns the line of a domain and its subdomains. Any line of a map that matches
// counts. A glob would not do: rspamd finds it anywhere in an address.
func mapText(l *listWriter, name string) string {
	entry, here := l.at(name)
	below, more := l.below(name)
	here, more = here && !entry.Exception, more && !below.Exception
	name = regexp.QuoteMeta(name)
	switch {
	case here && more:
		return `/@(.+\.)?` + name + "$/i\n"
	case here:
		return "/@" + name + "$/i\n"
	case more:
		return `/@.+\.` + name + "$/i\n"
	}
	return ""
}

// ZoneSerial returns the serial number of a zone that Write wrote.
func ZoneSerial(r io.Reader) (serial uint32, ok bool) {
	start, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	_, after, _ := strings.Cut(string(start), zoneStart)
	number, _, ok := strings.Cut(after, zoneTimes)
	n, err := strconv.ParseUint(number, 10, 32)
	return uint32(n), ok && err == nil
}
