package listfile

import (
	"errors"
	"strings"

	"spamgate/blocklist/sender"
)

var (
	errEmpty       = errors.New("there is no entry")
	errAllow       = errors.New(`an exception ("!") in an allow list`)
	errEverything  = errors.New("this would match everything")
	errWildcard    = errors.New(`a "*" inside an entry`)
	errLiteral     = errors.New(`an address literal without an "@" in front`)
	errIP          = errors.New("an IP address is not a sender")
	errSpace       = errors.New("white space inside an entry")
	errSingleLabel = errors.New("a single label covers every domain below it")
	errLongLabel   = errors.New("a label in the domain of more than 63 bytes, which no name in DNS has")
	errSuffix      = errors.New("a public suffix covers the domains of strangers")

	// The same without subdomains.
	errLabelAlone  = errors.New("a single label is rarely a mail domain")
	errSuffixAlone = errors.New("a public suffix is rarely a mail domain")
)

// errForeign is a character that no domain in mail has, or that in a list indicates
// another format.
type errForeign byte

func (c errForeign) Error() string { return `"` + string(rune(c)) + `" in the domain` }

// ParseEntry parses one entry without a comment: with Options.PerRecipient both sides of it.
// The error is a Problem.
func ParseEntry(text string, o Options) (Entry, error) {
	e, err := parseSides(text, o)
	if err != nil {
		p := explainSides(text, o, err)
		p.Text = clip(p.Text)
		return Entry{}, p
	}
	return e, nil
}

func parseEntry(s string, o Options) (Entry, error) {
	s = trim(s)
	rest, exception := strings.CutPrefix(s, "!")
	if exception {
		if o.Allow {
			return Entry{}, errAllow
		}
		s = trim(rest)
	}
	if s == "" {
		return Entry{}, errEmpty
	}
	e, err := parseForm(unwrap(s), o)
	e.Exception = exception
	return e, err
}

// unwrap removes one pair of angle brackets. It leaves two for the error message.
func unwrap(s string) string {
	if len(s) < 2 || s[0] != '<' || s[len(s)-1] != '>' {
		return s
	}
	inner := trim(s[1 : len(s)-1])
	if strings.HasPrefix(inner, "<") {
		return s
	}
	return inner
}

func trim(s string) string { return strings.Trim(s, " \t") }

// parseForm distinguishes the forms of an entry without exception mark and
// brackets. What is empty now is the null sender.
func parseForm(s string, o Options) (Entry, error) {
	if s == "" {
		return Entry{Key: "<>", Kind: sender.KindNull}, nil
	}
	pos := strings.LastIndexByte(s, '@')
	switch {
	case s == "*", s == "*@", s == "*@*", s == ".", s == "*.":
		return Entry{}, errEverything
	case pos == 0:
		return atDomain(s[1:])
	case pos == 1 && s[0] == '*':
		return atDomain(s[2:])
	case pos == len(s)-1:
		return local(s[:pos])
	case pos > 0 || s[0] == '"':
		return address(s)
	case s[0] == '.':
		return domain(s[1:], sender.KindDomain, o)
	case strings.HasPrefix(s, "*."):
		return domain(s[2:], sender.KindSubdomains, o)
	case o.Exact:
		return domain(s, sender.KindAtDomain, o)
	}
	return domain(s, sender.KindDomain, o)
}

// address parses "user@example.com".
func address(s string) (Entry, error) {
	a, err := sender.Parse(s)
	if err != nil {
		return Entry{}, err
	}
	if err := checkDomain(a.Domain()); err != nil {
		return Entry{}, err
	}
	// In quotes a * is an ordinary character.
	if strings.Contains(a.Local(), "*") && !strings.Contains(s, `"`) {
		return Entry{}, errWildcard
	}
	return Entry{Key: a.String(), Kind: sender.KindAddress}, nil
}

// local parses the local part of "user@".
func local(s string) (Entry, error) {
	l, err := sender.NormalizeLocal(s)
	if err != nil {
		return Entry{}, err
	}
	if strings.Contains(l, "*") && !strings.Contains(s, `"`) {
		return Entry{}, errWildcard
	}
	return Entry{Key: l + "@", Kind: sender.KindLocal}, nil
}

// atDomain parses the domain or literal of "@example.com".
func atDomain(s string) (Entry, error) {
	d, err := sender.NormalizeDomain(s)
	if err != nil {
		return Entry{}, err
	}
	if err := checkDomain(d); err != nil {
		return Entry{}, err
	}
	return Entry{Key: "@" + d, Kind: sender.KindAtDomain}, nil
}

// domain parses the domain of an entry without an @.
func domain(s string, k sender.Kind, o Options) (Entry, error) {
	d, err := sender.NormalizeDomain(s)
	if err != nil {
		return Entry{}, err
	}
	if err := checkDomain(d); err != nil {
		return Entry{}, err
	}
	if d[0] == '[' {
		return Entry{}, errLiteral
	}
	if isIP(d) {
		return Entry{}, errIP
	}
	if !o.AllowPublicSuffix {
		if err := checkSuffix(d, k); err != nil {
			return Entry{}, err
		}
	}
	e := Entry{Key: d, Kind: k}
	switch k {
	case sender.KindSubdomains:
		e.Key = "*." + d
	case sender.KindAtDomain:
		e.Key = "@" + d
	}
	return e, nil
}

// foreign are the characters of errForeign.
var foreign = func() (t [256]bool) {
	for _, c := range "/|^?!#='`~%$&{}" {
		t[c] = true
	}
	return t
}()

// checkDomain refuses a normalised domain that contains a foreign character, or a label that
// no name has (RFC 1035, section 2.3.4).
func checkDomain(d string) error {
	if hasLongLabel(d) {
		return errLongLabel
	}
	for i := range len(d) {
		if foreign[d[i]] {
			return errForeign(d[i])
		}
	}
	return nil
}

func hasLongLabel(d string) bool {
	if len(d) <= maxLabel || d[0] == '[' {
		return false
	}
	for label := range strings.SplitSeq(d, ".") {
		if len(label) > maxLabel {
			return true
		}
	}
	return false
}

const maxLabel = 63

// isIP reports whether a domain in normal form is an IPv4 address, a range of them,
// or the first octets of one: no top-level domain is a number. (IPv6 addresses have
// colons and are not domains.) For nearly every domain the last byte decides.
func isIP(d string) bool {
	last := d[strings.LastIndexByte(d, '.')+1:]
	return isDigit(last[len(last)-1]) && strings.Trim(last, "0123456789") == ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Covering returns the keys of all other entries that match all that an entry matches:
// those of example.com and *.com for @example.com.
func Covering(key string, kind sender.Kind) (keys []string) {
	walk, ok := walkOf(Entry{Key: key, Kind: kind})
	if !ok {
		return nil
	}
	own := false // the walk has come to the key: what follows is less specific
	for k, ok := walk.Next(); ok; k, ok = walk.Next() {
		if own {
			keys = append(keys, string(k.Text))
		}
		own = own || string(k.Text) == key
	}
	return keys
}

// walkOf returns the keys of a sender that the entry is for, of the kinds that all
// such senders share.
func walkOf(e Entry) (walk sender.Walk, ok bool) {
	address, only := e.Key, sender.AllKinds
	switch e.Kind {
	case sender.KindAtDomain:
		address, only = "x"+e.Key, domainKinds
	case sender.KindDomain:
		address, only = "x@"+e.Key, domainKinds
	case sender.KindSubdomains:
		address, only = "x@x"+e.Key[1:], domainKinds
	case sender.KindLocal:
		address, only = e.Key+"example.com", 1<<sender.KindLocal
	}
	a, err := sender.Parse(address)
	if err != nil || a.IsNull() {
		return walk, false
	}
	walk = a.Walk(nil)
	walk.Only(only)
	return walk, true
}

const domainKinds = sender.KindSet(1<<sender.KindAtDomain | 1<<sender.KindDomain | 1<<sender.KindSubdomains)

func isDomain(k sender.Kind) bool { return domainKinds.Has(k) }

// Matching returns the keys of all entries that match an address.
func Matching(a sender.Address) []string {
	walk := a.Walk(nil)
	var keys []string
	for k, ok := walk.Next(); ok; k, ok = walk.Next() {
		keys = append(keys, string(k.Text))
	}
	return keys
}

// KindOf returns the kind of a list's key.
func KindOf(key string) sender.Kind {
	switch {
	case key == "<>":
		return sender.KindNull
	case strings.HasPrefix(key, "@"):
		return sender.KindAtDomain
	case strings.HasSuffix(key, "@"):
		return sender.KindLocal
	case strings.Contains(key, "@"):
		return sender.KindAddress
	case strings.HasPrefix(key, "*."):
		return sender.KindSubdomains
	}
	return sender.KindDomain
}
