package sender

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"spamgate/internal/text"
)

// MaxDomain is the longest domain, in bytes of its ASCII form (RFC 5321,
// section 4.5.3.1.2). It bounds a Walk too: at most 128 labels fit.
const MaxDomain = 255

// maxRawDomain bounds what is given to IDNA, whose cost grows faster than its
// input. Four bytes a character are the most that UTF-8 takes.
const maxRawDomain = 4 * MaxDomain

// lookup maps a Unicode name to the one form under which all its spellings
// meet: UTS #46 mapping (case, width, ideographic full stops, NFC), then
// Punycode. It is non-transitional, as registries and browsers are today:
// faß.de and fass.de are two domains with two owners.
//
// The checks of the profile are off. They tell whether a name may be
// registered, and a sender's name is looked up whether it may or not: a name
// with an underscore, with hyphens in the wrong place, or with a character
// newer than our tables would otherwise not be judged at all.
var lookup = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.ValidateLabels(false),
)

var (
	errNoDomainText = errors.New("an empty domain")
	errEmptyLabel   = errors.New("an empty label in the domain (a dot too many)")
	errLongDomain   = fmt.Errorf("a domain of more than %d bytes", MaxDomain)
	errNoASCII      = errors.New("a label in the domain that has no ASCII form")
	errLiteral      = errors.New("an address literal that is no IP address (want [192.0.2.1] or [IPv6:2001:db8::1])")
)

// NormalizeDomain returns the normal form of a domain or an address literal:
// what follows the @ of an address.
func NormalizeDomain(s string) (string, error) {
	if isNormalDomain(s) {
		return s, nil
	}
	if err := checkText(s); err != nil {
		return "", err
	}
	return normalizeDomain(s)
}

func normalizeDomain(s string) (string, error) {
	if strings.HasPrefix(s, "[") {
		return normalizeLiteral(s)
	}
	if len(s) > maxRawDomain {
		return "", errLongDomain
	}
	d, err := asciiDomain(s)
	if err != nil {
		return "", err
	}
	if d = strings.TrimSuffix(d, "."); !isNormalDomain(d) {
		return "", explainDomain(d)
	}
	return d, nil
}

// isNormalDomain reports whether d is a domain in normal form; an address
// literal is not one.
func isNormalDomain(d string) bool {
	label := 0 // bytes of the label so far
	for i := range len(d) {
		switch {
		case class[d[i]]&normalDomain != 0:
			label++
		case d[i] == '.' && label > 0:
			label = 0
		default:
			return false
		}
	}
	return label > 0 && len(d) <= MaxDomain
}

// explainDomain says why d, in ASCII and lower case, is not in normal form.
func explainDomain(d string) error {
	for i := range len(d) {
		if d[i] != '.' && class[d[i]]&normalDomain == 0 {
			return fmt.Errorf("%s in the domain", name(rune(d[i])))
		}
	}
	switch {
	case d == "":
		return errNoDomainText
	case len(d) > MaxDomain:
		return errLongDomain
	}
	return errEmptyLabel
}

// asciiDomain lower-cases s and writes its labels in ASCII. A label that is
// ASCII is only lower-cased: IDNA's mapping does no more to it, and where IDNA
// refuses it (bounce_1, a false xn--) it is used as it is. A property test
// holds this against the library.
func asciiDomain(s string) (string, error) {
	if text.IsASCII(s) {
		return strings.ToLower(s), nil
	}
	labels := strings.Split(fullStops.Replace(s), ".")
	for i, label := range labels {
		if text.IsASCII(label) {
			labels[i] = strings.ToLower(label)
			continue
		}
		// The error is an opinion on validity, see lookup; the result is
		// mapped in any case. U+FFFD stands for text that was lost, and is
		// refused here because IDNA's tables differ on it.
		a, _ := lookup.ToASCII(label)
		if !text.IsASCII(a) || a == "" || strings.ContainsRune(label, utf8.RuneError) {
			return "", errNoASCII
		}
		labels[i] = a
	}
	return strings.Join(labels, "."), nil
}

// fullStops are the characters that UTS #46 maps to a dot.
var fullStops = strings.NewReplacer("。", ".", "．", ".", "｡", ".")

// normalizeLiteral returns an address literal as netip writes its address.
// An IPv4 address in IPv6 clothes is the IPv4 address: mail to either goes to
// one host.
func normalizeLiteral(s string) (string, error) {
	inner, ok := strings.CutSuffix(s[1:], "]")
	if !ok {
		return "", errors.New("an address literal that is never closed")
	}
	v6 := false
	if len(inner) >= 5 && strings.EqualFold(inner[:5], "ipv6:") {
		inner, v6 = inner[5:], true
	}
	ip, err := netip.ParseAddr(inner)
	if err != nil || ip.Zone() != "" || v6 && ip.Is4() {
		return "", errLiteral
	}
	if ip = ip.Unmap(); ip.Is4() {
		return "[" + ip.String() + "]", nil
	}
	return "[ipv6:" + ip.String() + "]", nil
}
