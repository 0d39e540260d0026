package sender

import (
	"strings"

	"spamgate/internal/suffix"
)

// Wrappings are kinds of wrapping that Unwrap takes off. It is a bit set.
type Wrappings uint8

// The kinds.
const (
	// SRS is the Sender Rewriting Scheme, by which a forwarder writes its own domain
	// into the reverse-path: SRS0, SRS1, SRS+, and Microsoft's MAILBOX+SRS=.
	SRS Wrappings = 1 << iota

	// BATV is a tag by which a domain recognises bounces of its own mail: prvs=,
	// Barracuda's btv1== and SparkPost's msprvs1=. The domain stays the same.
	BATV
)

// Unwrap takes one layer of wrapping off an address. It returns the address within, and
// the name of the scheme: "srs0", "srs1", "srs" (Microsoft's, and one of old logs), "prvs", "msprvs1" or
// "btv1". It allocates nothing for an address without wrapping.
//
//	srs0=HASH=TT=example.com=ann@forwarder.example   ann@example.com
//	srs1=HASH=first.example=REST@second.example      srs0REST@first.example
//	srs+HASH=TT=example.com=ann@forwarder.example    ann@example.com
//	box+srs=HASH=TT=example.com=ann@box.example      ann@example.com
//	prvs=0123abcdef=ann@example.com                  ann@example.com
//	btv1==0123abcdef0==ann@example.com               ann@example.com
//
// Where no valid address is within, nothing is wrapped. Addresses with a recipient in
// them are not wrapped senders: VERP, and Gmail's +caf_=.
//
// Only the server that made a hash can verify it: anybody can write any inner address.
// A domain in a local part was folded with it: faß.example is found as fass.example.
// Each inner address has a shorter local part, so that repeated unwrapping ends.
func Unwrap(a Address, w Wrappings) (inner Address, scheme string, ok bool) {
	if strings.IndexByte(a.text, '=') < 0 && !strings.HasPrefix(a.text, "srs") {
		return Address{}, "", false
	}
	return open(a, w)
}

// open implements Unwrap without its fast path.
func open(a Address, w Wrappings) (inner Address, scheme string, ok bool) {
	raw := a.Local()
	start := strings.TrimPrefix(raw, `"`)
	for _, s := range schemes {
		if w&s.kind == 0 || !strings.HasPrefix(start, s.prefix) || s.prefix == "" && !strings.Contains(start, plusSRS) {
			continue
		}
		content, err := unquote(raw)
		if err != nil {
			break
		}
		if inner, ok = join(s.open(content[len(s.prefix):], a.Domain())); ok {
			return inner, s.name, true
		}
	}
	return Address{}, "", false
}

// plusSRS follows the mailbox's name in Microsoft's form of SRS.
const plusSRS = "+srs="

// schemes are what Unwrap knows: open takes what follows the prefix of a local part, and
// the domain, and returns those of the address within; an empty local part for none.
// Microsoft's form comes last, as its mark may be part of what another one wraps.
var schemes = [...]struct {
	kind         Wrappings
	prefix, name string
	open         func(rest, domain string) (string, string)
}{
	{SRS, "srs0", "srs0", openSRS0},
	{SRS, "srs1", "srs1", openSRS1},
	{SRS, "srs+", "srs", openOldSRS},
	{BATV, "prvs=", "prvs", openPRVS},
	{BATV, "msprvs1=", "msprvs1", openMSPRVS},
	{BATV, "btv1==", "btv1", openBTV},
	{SRS, "", "srs", openPlusSRS},
}

// openSRS0 opens =HASH=TT=DOMAIN=LOCAL.
func openSRS0(rest, _ string) (local, domain string) {
	if f := srsFields(rest, 4); f != nil && f[0] != "" && f[1] != "" {
		return f[3], f[2]
	}
	return "", ""
}

// openOldSRS opens HASH=TT=DOMAIN=LOCAL after srs+, as in old logs: the form before there
// was an SRS1.
func openOldSRS(rest, _ string) (local, domain string) { return openSRS0("+"+rest, "") }

// openSRS1 opens =HASH=FORWARDER=REST, in which REST begins with a separator of its own:
// the second forwarder took "srs0" and the first one's domain off srs0REST@FORWARDER.
func openSRS1(rest, _ string) (local, domain string) {
	f := srsFields(rest, 3)
	if f == nil || f[0] == "" || len(f[2]) < 2 || strings.IndexByte(srsSeparators, f[2][0]) < 0 {
		return "", ""
	}
	return "srs0" + f[2], f[1]
}

// srsSeparators may follow srs0 and srs1.
const srsSeparators = "=+-"

// srsFields returns the n fields of what follows srs0 or srs1, nil if there are fewer.
// The first separator is one of three, the others are equals signs. A few forwarders
// write plus signs everywhere. The last field may contain any of them.
func srsFields(s string, n int) []string {
	if s == "" || strings.IndexByte(srsSeparators, s[0]) < 0 {
		return nil
	}
	f := strings.SplitN(s[1:], "=", n)
	if len(f) < n && s[0] == '+' {
		f = strings.SplitN(s[1:], "+", n)
	}
	if len(f) < n {
		return nil
	}
	return f
}

// openPlusSRS opens MAILBOX+srs=HASH=TT=DOMAIN=LOCAL. Microsoft writes bounces+srs=HASH=TT
// where that has more than 64 characters, and for mail relayed from a customer's own
// servers: the sender is then in Microsoft's database alone.
func openPlusSRS(content, _ string) (local, domain string) {
	mailbox, rest, ok := strings.Cut(content, plusSRS)
	if !ok || mailbox == "" || mailbox == "bounces" {
		return "", ""
	}
	return openSRS0("="+rest, "")
}

// openPRVS opens TAG=LOCAL, and LOCAL=TAG, which is seen too. A tag has ten characters: a
// key's number, a day, and six hexadecimal digits (draft-levine-smtp-batv-01). Cisco's has
// nine.
func openPRVS(rest, domain string) (string, string) {
	tag, local, _ := strings.Cut(rest, "=")
	if i := strings.LastIndexByte(rest, '='); i >= 0 && !isTag(tag, 'f') && isTag(rest[i+1:], 'f') {
		return rest[:i], domain
	}
	if !isTag(tag, 'z') {
		return "", ""
	}
	return local, domain
}

// isTag reports whether s is the tag of a prvs address, of digits and the letters up to
// last.
func isTag(s string, last byte) bool {
	return (len(s) == 9 || len(s) == 10) && isAlphanumeric(s, last)
}

// openMSPRVS opens TAG=LOCAL.
func openMSPRVS(rest, domain string) (string, string) {
	tag, local, _ := strings.Cut(rest, "=")
	if tag == "" {
		return "", ""
	}
	return local, domain
}

// openBTV opens HEX==LOCAL.
func openBTV(rest, domain string) (string, string) {
	tag, local, _ := strings.Cut(rest, "==")
	if tag == "" || !isAlphanumeric(tag, 'z') {
		return "", ""
	}
	return local, domain
}

// isAlphanumeric reports whether s has only digits and the lower-case letters up to last.
func isAlphanumeric(s string, last byte) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > last) {
			return false
		}
	}
	return true
}

// join returns the address with a local part, given without quotes, and a domain. It
// reports whether both are valid.
func join(content, domain string) (Address, bool) {
	if content == "" {
		return Address{}, false
	}
	local, err := NormalizeLocal(quote(content))
	if err != nil {
		return Address{}, false
	}
	if domain, err = NormalizeDomain(domain); err != nil {
		return Address{}, false
	}
	return Address{local + "@" + domain, len(local)}, true
}

// Aligned reports whether two domains in normal form have one organizational domain, by
// publicsuffix.org's list: relaxed alignment, as in RFC 7489, section 3.1. Two names below
// a domain whose owner gives names to customers (github.io) are not aligned. An address
// literal is aligned with nothing.
func Aligned(a, b string) bool {
	if a == "" || a[0] == '[' || b == "" || b[0] == '[' {
		return false
	}
	if a == b {
		return true
	}
	organization := suffix.Organization(a)
	return organization != "" && organization == suffix.Organization(b)
}
