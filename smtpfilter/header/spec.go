package header

import (
	"bytes"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/rangetable"
)

// appendAddress appends the readings of a local part and a domain, both without quotes: as
// written, and decoded if they have an encoded-word.
func (b *budget) appendAddress(found []string, local, domain []byte, decode bool) []string {
	b.spend(1)
	b.spendPart(local)
	b.spendPart(domain)
	found = appendReadings(found, local, domain)
	if decode && (bytes.Contains(local, encodedStart) || bytes.Contains(domain, encodedStart)) {
		text := b.decodeWords(string(local) + "@" + string(domain))
		found = b.scanAs(asText, text, found)
	}
	return found
}

// appendReadings appends local@domain, and the addresses that lenient readers make of
// unusual characters in it.
func appendReadings(found []string, local, domain []byte) []string {
	local, domain = cutLocal(visible(local)), visible(domain)
	if literal, rest, ok := cutLiteral(domain); ok {
		found = append(found, join(local, literal))
		if len(rest) == 0 {
			return found
		}
	}
	host := cleanHost(string(domain))
	found = appendHost(found, local, host)
	// Zero-width joiners have a meaning in host names of a few scripts. Elsewhere they
	// are another way to write a domain.
	if strings.ContainsAny(host, joiners) {
		found = appendHost(found, local, cleanHost(withoutJoiners.Replace(host)))
	}
	return found
}

const joiners = "\u200c\u200d"

var withoutJoiners = strings.NewReplacer("\u200c", "", "\u200d", "")

// appendHost appends local@domain. If the domain has a character that host names do not
// have, the part before it counts too, as in a@b.example?subject=x; and so does the
// address inside 'a@b.example'.
func appendHost(found []string, local []byte, domain string) []string {
	odd := strings.IndexFunc(domain, isOdd)
	if odd < 0 {
		if domain == "" {
			return found
		}
		return append(found, join(local, cutDomain(domain)))
	}
	if isAtext(domain) {
		found = append(found, join(local, cutDomain(domain)))
		// Some readers cut what follows a name.
		if cut := strings.TrimRightFunc(domain, isOdd); cut != domain && strings.ContainsFunc(cut, isOdd) {
			found = append(found, join(local, cutDomain(cut)))
		}
	}
	host := cutDomain(strings.TrimRight(domain[:odd], "."))
	if host == "" {
		return found
	}
	found = append(found, join(local, host))
	if domain[odd] == '\'' && len(local) > 1 && local[0] == '\'' {
		found = append(found, join(local[1:], host))
	}
	return found
}

// isOdd reports whether host names do not have an ASCII character.
func isOdd(r rune) bool { return r < utf8.RuneSelf && !isHostByte(byte(r)) }

// cutLiteral parses the address literal at the start of a domain.
func cutLiteral(domain []byte) (literal string, rest []byte, ok bool) {
	end := bytes.IndexByte(domain, ']')
	if end < 0 || end > maxDomain || domain[0] != '[' {
		return "", nil, false
	}
	inside := strings.Trim(string(domain[1:end]), " ")
	return "[" + inside + "]", domain[end+1:], isIP(inside)
}

// hostCleaner replaces the full stops that IDNA treats as dots (RFC 3490, section 3.1), and
// removes brackets.
var hostCleaner = strings.NewReplacer("\u3002", ".", "\uff0e", ".", "\uff61", ".", "[", "", "]", "")

// cleanHost removes brackets and empty labels, also that of the root.
func cleanHost(s string) string {
	s = strings.Trim(hostCleaner.Replace(s), ".")
	if !strings.Contains(s, "..") {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '.' }), ".")
}

// join returns an addr-spec.
func join(local []byte, domain string) string {
	var buf [128]byte
	b := buf[:0]
	if isDotString(local) {
		b = append(b, local...)
	} else {
		b = append(b, '"')
		for _, c := range local {
			if c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, c)
		}
		b = append(b, '"')
	}
	return string(append(append(b, '@'), domain...))
}

// isDotString reports whether a local part needs no quotes (RFC 5321, section 4.1.2, with
// UTF-8 as in RFC 6531).
func isDotString(local []byte) bool {
	return len(local) > 0 && isAtext(string(local)) &&
		local[0] != '.' && local[len(local)-1] != '.' && !bytes.Contains(local, []byte(".."))
}

// isAtext reports whether s consists of atoms and dots (RFC 5322, section 3.2.3).
func isAtext(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`()<>[]:;@\,"`, c) >= 0 {
			return false
		}
	}
	return true
}

// isHostByte reports whether host names have a byte, counting underscores and UTF-8, which
// real ones have.
func isHostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c >= utf8.RuneSelf
}

// maxIP is more than the length of any IP address as text, in bytes.
const maxIP = 64

// isIP reports whether s is the inside of an address literal (RFC 5321, section 4.1.3).
func isIP(s string) bool {
	if len(s) > 5 && strings.EqualFold(s[:5], "IPv6:") {
		s = s[5:]
	}
	if len(s) > maxIP {
		return false
	}
	_, err := netip.ParseAddr(s)
	return err == nil
}

// visible removes from a part of an address the characters that readers do not show:
// control and format characters, and non-ASCII space. It reads invalid UTF-8 as
// Windows-1252.
func visible(part []byte) []byte {
	if isPrintable(part) {
		return part
	}
	out := make([]byte, 0, len(part)+8)
	for i := 0; i < len(part); {
		r, size := utf8.DecodeRune(part[i:])
		if r == utf8.RuneError && size == 1 {
			r = charmap.Windows1252.DecodeByte(part[i])
		}
		i += size
		if !isInvisible(r) {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// isPrintable reports whether a part is printable ASCII.
func isPrintable(part []byte) bool {
	plain := true
	for _, c := range part {
		plain = plain && ' ' <= c && c <= '~'
	}
	return plain
}

func isInvisible(r rune) bool {
	switch {
	case r == ' ', r == '\u200c', r == '\u200d':
		return false
	case unicode.IsControl(r), unicode.IsSpace(r):
		return true
	}
	return r >= 0xad && unicode.Is(invisible, r)
}

// invisible has the characters that readers do not show, except controls and space. The
// first is the soft hyphen.
var invisible = rangetable.Merge(unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
