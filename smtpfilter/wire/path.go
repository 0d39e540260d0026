package wire

import (
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"spamgate/internal/text"
)

// Path is a validated reverse-path or forward-path (RFC 5321, section 4.1.2): the
// address without its angle brackets, byte for byte as received. The zero Path is the
// null reverse-path, <>.
//
// The grammar accepts what Postfix accepts if all servers read it in the same way: dots
// anywhere in a local part (a..b@), underscores in a domain's labels, one trailing dot,
// missing brackets. It refuses what servers are known to read in different ways: source
// routes (in quotes, too: Postfix drops the quotes before it looks for a route),
// comments, white space, control bytes, half-quoted local parts and a second unquoted
// '@'.
//
// With SMTPUTF8 (RFC 6531) both parts may hold letters beyond ASCII, as far as
// checkLocalUTF8 and checkDomainUTF8 accept them.
type Path struct {
	addr string
	pos  int // index of the '@' that splits addr, or -1
}

// String returns the address without brackets, "" for the null reverse-path.
func (p Path) String() string { return p.addr }

// IsNull reports whether p is the null reverse-path.
func (p Path) IsNull() bool { return p.addr == "" }

// LocalPart returns the part before the '@', quotes included.
func (p Path) LocalPart() string {
	if p.IsNull() || p.pos < 0 {
		return p.addr
	}
	return p.addr[:p.pos]
}

// Domain returns the part after the '@', "" for <> and <postmaster>.
func (p Path) Domain() string {
	if p.IsNull() || p.pos < 0 {
		return ""
	}
	return p.addr[p.pos+1:]
}

// The reasons to refuse a path, as texts for a reply.
var (
	errPathSyntax   = errors.New("expected <address>")
	errPathRoute    = errors.New("source routes are not accepted")
	errPathLocal    = errors.New("invalid local part")
	errPathQuoted   = errors.New("invalid quoted local part")
	errPathNoDomain = errors.New("address needs a domain")
	errPathDomain   = errors.New("invalid domain")
	errPathLiteral  = errors.New("invalid address literal")
	errPath8bit     = errors.New("8-bit addresses need SMTPUTF8")
)

// ParsePath parses a path, with or without brackets, in ASCII or with SMTPUTF8.
func ParsePath(s string) (Path, error) {
	p, rest, err := parsePath(s)
	if err == nil && rest != "" {
		err = errPathSyntax
	}
	return p, err
}

// parsePath parses the path at the start of s, after optional white space, and returns
// the rest of s. The caller checks that a parameter or nothing follows, and that an
// address beyond ASCII is allowed.
func parsePath(s string) (p Path, rest string, err error) {
	s = strings.TrimLeft(s, " ")
	bracket := strings.HasPrefix(s, "<")
	if bracket {
		s = s[1:]
		if strings.HasPrefix(s, ">") {
			return Path{}, s[1:], nil
		}
	}
	if strings.HasPrefix(s, "@") {
		return Path{}, "", errPathRoute
	}

	end, err := scanLocalPart(s)
	if err != nil {
		return Path{}, "", err
	}
	p.pos = -1
	if strings.HasPrefix(s[end:], "@") {
		p.pos = end
		if end, err = scanDomain(s, end+1); err != nil {
			return Path{}, "", err
		}
	}
	p.addr, rest = s[:end], s[end:]
	if !text.IsASCII(p.addr) {
		if err := checkPathUTF8(p); err != nil {
			return Path{}, "", err
		}
	}
	if bracket {
		if !strings.HasPrefix(rest, ">") {
			return Path{}, "", errPathSyntax
		}
		rest = rest[1:]
	}
	return p, rest, nil
}

// scanLocalPart returns the index after the local part at the start of s.
func scanLocalPart(s string) (int, error) {
	if strings.HasPrefix(s, `"`) {
		return scanQuoted(s)
	}
	i := 0
	for i < len(s) && (isAtext(s[i]) || s[i] == '.' || s[i] >= utf8.RuneSelf) {
		i++
	}
	if i == 0 {
		return 0, errPathSyntax
	}
	if i < len(s) && s[i] != '@' && s[i] != '>' && s[i] != ' ' {
		return 0, errPathLocal
	}
	return i, nil
}

// scanQuoted returns the index after the Quoted-string at the start of s, which must be
// the whole local part.
func scanQuoted(s string) (int, error) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == 0x7f:
			return 0, errPathQuoted
		case c == '\\':
			i++
			if i == len(s) || s[i] < ' ' || s[i] > '~' {
				return 0, errPathQuoted
			}
		case c == '"':
			if i == 1 || i+1 == len(s) || s[i+1] != '@' {
				return 0, errPathQuoted
			}
			if quotedRoute(s[1:i]) {
				return 0, errPathRoute
			}
			return i + 1, nil
		}
	}
	return 0, errPathQuoted
}

// quotedRoute reports whether a quoted local part could pass for a source route without
// its quotes: it begins with '@', or holds '@' and ':'.
func quotedRoute(content string) bool {
	return strings.HasPrefix(strings.TrimLeft(content, ` \`), "@") ||
		strings.Contains(content, "@") && strings.Contains(content, ":")
}

// scanDomain returns the index after the domain or address literal at s[i:].
func scanDomain(s string, i int) (int, error) {
	if i < len(s) && s[i] == '[' {
		n := strings.IndexByte(s[i:], ']')
		if n < 0 || !validLiteral(s[i+1:i+n]) {
			return 0, errPathLiteral
		}
		return i + n + 1, nil
	}
	start := i
	for i < len(s) && (isDomainByte(s[i]) || s[i] >= utf8.RuneSelf) {
		i++
	}
	if i == start {
		return 0, errPathNoDomain
	}
	if i < len(s) && s[i] != '>' && s[i] != ' ' {
		return 0, errPathDomain
	}
	if text.IsASCII(s[start:i]) && !validDomain(s[start:i]) {
		return 0, errPathDomain
	}
	return i, nil
}

// validDomain reports whether d, which holds letters, digits, '-', '_' and '.', has
// labels of 1 to 63 bytes, at most 255 bytes in all, and at most one trailing dot.
func validDomain(d string) bool {
	d = strings.TrimSuffix(d, ".")
	if d == "" || len(d) > 255 {
		return false
	}
	for label := range strings.SplitSeq(d, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return true
}

// validLiteral reports whether s is the inside of an address literal: an IPv4 address,
// or an IPv6 address after "IPv6:" (RFC 5321, section 4.1.3).
func validLiteral(s string) bool {
	if len(s) > 5 && strings.EqualFold(s[:5], "IPv6:") {
		ip, err := netip.ParseAddr(s[5:])
		return err == nil && ip.Is6() && ip.Zone() == ""
	}
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Is4()
}

// isAtext reports whether c is RFC 5322's atext.
func isAtext(c byte) bool {
	return isAlnum(c) || strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

func isDomainByte(c byte) bool {
	return isAlnum(c) || c == '-' || c == '_' || c == '.'
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
