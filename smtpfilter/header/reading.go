package header

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// reading is one way to read what readers do not agree about. The zero reading comes first,
// and its addresses are senders. What another reading adds is a guess.
type reading struct {
	junk  junkReading
	words wordReading
}

// junkReading says what controls count as, and bytes that are not UTF-8.
type junkReading uint8

const (
	keepJunk  junkReading = iota // a control separates words, a byte is a character in Windows-1252
	dropJunk                     // nothing: "lis\x01ted" is listed
	splitJunk                    // a space
)

// wordReading says how encoded-words are read whose charset is unknown, or is not a superset
// of ASCII.
type wordReading uint8

const (
	decodeWord   wordReading = iota // in their charset; as ASCII if it is unknown
	rawWord                         // as ASCII
	ebcdicWord                      // in EBCDIC, if the charset is unknown
	utf7Word                        // in UTF-7, likewise
	sevenBitWord                    // without the highest bit of each byte, likewise
)

// seen is what a first reading came across that others may read differently.
type seen struct {
	junk    bool
	foreign bool   // an encoded-word in a charset that is not a superset of ASCII
	unknown bool   // an encoded-word in an unknown charset
	opaque  string // the first encoded-word that could not be decoded, as written
}

// others returns the readings that may find more.
func (s *seen) others() []reading {
	var all []reading
	if s.junk {
		all = append(all, reading{junk: dropJunk}, reading{junk: splitJunk})
	}
	if s.foreign {
		all = append(all, reading{words: rawWord, junk: dropJunk})
	}
	if s.unknown {
		all = append(all, reading{words: ebcdicWord, junk: dropJunk}, reading{words: utf7Word, junk: dropJunk},
			reading{words: sevenBitWord, junk: dropJunk})
	}
	return all
}

// clean applies the present reading to the junk in a text.
func (b *budget) clean(text string) string {
	if !strings.ContainsFunc(text, isJunk) {
		return text
	}
	b.seen.junk = true
	if b.reading.junk == keepJunk {
		return text
	}
	b.spend(len(text) / oddPerWord)
	return strings.Map(func(r rune) rune {
		switch {
		case !isJunk(r):
			return r
		case b.reading.junk == splitJunk:
			return ' '
		}
		return -1
	}, text)
}

// isJunk reports whether a character is a control, except tab, or a space that is not ASCII, or
// does not decode.
func isJunk(r rune) bool {
	return r == utf8.RuneError || r != '\t' && unicode.IsControl(r) || r >= utf8.RuneSelf && unicode.IsSpace(r)
}

// guess reads a value as some readers do that take other marks for its parts: Python ends a
// quoted string, a comment and an address literal at a fold, and decodes encoded-words with
// punctuation in them before it looks for addresses. It reads all values of a name as one, so that
// a quoted string may begin in one value and end in the next.
func (c *collector) guess(folded []byte, value string) {
	var texts []string
	if foldInside(folded) {
		lines := strings.Split(strings.ReplaceAll(strings.TrimRight(string(folded), "\r\n"), "\r\n", "\n"), "\n")
		for _, c.budget.reading.junk = range []junkReading{keepJunk, dropJunk} {
			clean := make([]string, len(lines))
			for i, line := range lines {
				clean[i] = c.budget.clean(line)
			}
			texts = append(texts, strings.Join(clean, "\r"))
		}
		c.budget.reading = reading{}
	}
	if hasBrokenWord(value) {
		texts = append(texts, c.budget.decodeWords(value))
	}
	c.guessing = true
	if isQuotedAgain(value) {
		s := scanner{text: c.budget.decodeWords(value), mode: asText, out: c, budget: &c.budget}
		s.run()
	}
	c.take(c.budget.cutMembers(value), nil)
	if slices.Contains(c.open, c.field) { // Python reads all values of a name as one
		for _, m := range []mode{asRaw, asText} {
			s := scanner{text: value, mode: m, out: c, budget: &c.budget}
			s.run()
		}
	}
	for _, text := range slices.Compact(texts) {
		s := scanner{text: text, mode: byGrammar, out: c, budget: &c.budget, folds: true}
		s.run()
	}
	c.guessing = false
}

// isQuotedAgain reports whether a value has a name that Sendmail 8.17 puts into quotes, as it has
// one of these characters outside of quotes (MustQuoteChars), and a quoted pair inside. Sendmail
// writes two backslashes for it, and they end the quotes.
func isQuotedAgain(value string) bool {
	if !strings.Contains(value, `\`) || !strings.Contains(value, "<") {
		return false
	}
	quoted, pair, odd := false, false, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
			pair, odd = pair || quoted, odd || !quoted
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<' && pair && odd:
			return true
		case c == ',' || c == '>':
			pair, odd = false, false
		case strings.IndexByte("@;:()[].'", c) >= 0:
			odd = true
		}
	}
	return false
}

// Sendmail 8.17 cuts each member of a list after so many bytes at least and at most: its limit for
// an address is 256 (MAXNAME), and it adds and removes some while it rewrites.
const (
	cutFrom = 190
	cutTo   = 262
)

// cutMembers returns the addresses that Sendmail may make of long members, by a cut inside their
// domain.
func (b *budget) cutMembers(value string) (found []string) {
	quoted, depth, start := false, 0, 0
	for i := 0; i <= len(value); i++ {
		switch {
		case i == len(value), value[i] == ',' && !quoted && depth == 0:
			found = b.cutMember(found, value[start:i])
			start = i + 1
		case value[i] == '\\':
			i++
		case value[i] == '"' && depth == 0:
			quoted = !quoted
		case value[i] == '(' && !quoted:
			depth++
		case value[i] == ')' && !quoted && depth > 0:
			depth--
		}
	}
	return found
}

func (b *budget) cutMember(found []string, member string) []string {
	for end := cutFrom; end < min(cutTo, len(member)); end++ {
		if !isHostByte(member[end-1]) || !isHostByte(member[end]) {
			continue
		}
		pos := strings.LastIndexByte(member[:end], '@')
		if pos < 0 || end-pos > maxDomain || strings.ContainsFunc(member[pos+1:end], isOdd) {
			continue
		}
		local := member[strings.LastIndexAny(member[:pos], " \t<,;:\"(")+1 : pos]
		found = b.appendAddress(found, []byte(local), []byte(member[pos+1:end]), false)
	}
	return found
}

// foldInside reports whether a line break may be inside a quoted string, a comment or an address
// literal: one of these began before it.
func foldInside(folded []byte) bool {
	folded = bytes.TrimRight(folded, "\r\n")
	if !bytes.ContainsRune(folded, '\n') && !bytes.ContainsRune(folded, '\r') {
		return false
	}
	open := 0
	for i := 0; i < len(folded); i++ {
		switch folded[i] {
		case '\\':
			i++
		case '"', '(', '[':
			open++ // it may also close one, or be part of one
		case '\r', '\n':
			if open > 0 {
				return true
			}
		}
	}
	return false
}

// hasBrokenWord reports whether a value has an encoded-word with punctuation in it that RFC 2047,
// section 5 does not allow there.
func hasBrokenWord(value string) bool {
	if !strings.Contains(value, "=?") {
		return false
	}
	broken := false
	(&budget{}).replaceWords(value, func(w encodedWord) string {
		broken = broken || strings.ContainsAny(w.text, `,;:<>"()`)
		return ""
	})
	return broken
}

// ebcdic decodes EBCDIC. Its code pages agree about letters, digits, dots and hyphens, and put
// the "@" in different places, which all count (code pages 037, 273, 277, 278, 297, 871 and
// 1026).
func ebcdic(raw []byte) string {
	var out strings.Builder
	for _, c := range raw {
		switch c {
		case 0x7c, 0xb5, 0x80, 0xec, 0x44, 0xac, 0xae:
			out.WriteByte('@')
		default:
			out.WriteRune(charmap.CodePage037.DecodeByte(c))
		}
	}
	return out.String()
}

// sevenBit clears the highest bit of each byte: MacArabic has punctuation a second time there.
// Python's punycode drops a hyphen at the end.
func sevenBit(raw []byte) string {
	text := make([]byte, len(raw))
	for i, c := range raw {
		text[i] = c & 0x7f
	}
	return strings.TrimSuffix(string(text), "-")
}

// shifted matches what UTF-7 encodes: RFC 2152, and with "&" RFC 3501, section 5.1.3.
var shifted = regexp.MustCompile(`[+&][A-Za-z0-9+/,]+-?`)

// utf7 decodes UTF-7.
func utf7(raw []byte) string {
	return shifted.ReplaceAllStringFunc(string(raw), func(s string) string {
		text := strings.ReplaceAll(strings.TrimSuffix(s[1:], "-"), ",", "/")
		units := make([]uint16, len(text)*6/16)
		bytes, _ := base64.RawStdEncoding.DecodeString(text[:len(text)-len(text)%4+min(len(text)%4, 3)])
		for i := range units {
			if 2*i+1 < len(bytes) {
				units[i] = uint16(bytes[2*i])<<8 | uint16(bytes[2*i+1])
			}
		}
		return string(utf16.Decode(units))
	})
}
