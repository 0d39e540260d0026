package header

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

var encodedStart = []byte("=?")

// decodeWords decodes the encoded-words of a text (RFC 2047), even malformed ones: what a
// lenient mail reader decodes must be judged. It accepts space in them and incomplete
// base64, and reads an unknown charset as ASCII. It drops space between two of them. Words
// beyond the budget stay encoded.
func (b *budget) decodeWords(text string) string { return b.replaceWords(text, b.decode) }

// replaceWords replaces the encoded-words of a text, as decodeWords does.
func (b *budget) replaceWords(text string, with func(encodedWord) string) string {
	if !strings.Contains(text, "=?") {
		return text
	}
	var out strings.Builder
	afterWord := false
	for {
		start := strings.Index(text, "=?")
		if start < 0 || b.spent() {
			out.WriteString(text)
			return out.String()
		}
		w, ok := cutWord(text[start:])
		if !ok {
			b.spend(1)
			out.WriteString(text[:start+2])
			text, afterWord = text[start+2:], false
			continue
		}
		if !afterWord || strings.Trim(text[:start], " \t") != "" {
			out.WriteString(text[:start])
		}
		out.WriteString(with(w))
		text, afterWord = text[start+len(w.written):], true
	}
}

// encodedWord is =?charset?encoding?text?=.
type encodedWord struct {
	charset  string
	encoding byte
	text     string
	written  string
}

// cutWord parses the encoded-word at the start of s. It does not look beyond the next
// "=?", so that many broken words cost linear time.
func cutWord(s string) (encodedWord, bool) {
	charset := strings.IndexByte(s[2:], '?')
	if charset < 0 {
		return encodedWord{}, false
	}
	text := 2 + charset + len("?q?")
	if text >= len(s) || s[text-1] != '?' {
		return encodedWord{}, false
	}
	w := encodedWord{charset: s[2 : 2+charset], encoding: s[text-2] | 0x20}
	if w.encoding != 'q' && w.encoding != 'b' {
		return encodedWord{}, false
	}
	for i := text; i+1 < len(s); i++ {
		switch {
		case s[i] != '?':
		case s[i+1] == '=':
			w.text, w.written = s[text:i], s[:i+2]
			return w, true
		case s[i-1] == '=':
			return encodedWord{}, false
		}
	}
	return encodedWord{}, false
}

// decode returns a word's text as UTF-8, or its bytes if the charset is unknown, in the
// present reading.
func (b *budget) decode(w encodedWord) string {
	b.spend(workPerEncoded)
	raw := w.bytes()
	name, _, _ := strings.Cut(strings.ToLower(strings.Trim(w.charset, " \t")), "*") // RFC 2231: a language may follow
	text := string(raw)
	if name != "utf-8" && name != "us-ascii" {
		text = b.decodeFrom(b.charset(name), raw)
	}
	if b.seen.opaque == "" && strings.ContainsRune(text, utf8.RuneError) {
		b.seen.opaque = w.written
	}
	return b.clean(text)
}

// decodeFrom returns text in a charset, in the present reading.
func (b *budget) decodeFrom(c charset, raw []byte) string {
	words := b.reading.words
	if c.encoding == nil {
		b.seen.unknown = true
		switch words {
		case ebcdicWord:
			return ebcdic(raw)
		case utf7Word:
			return utf7(raw)
		case sevenBitWord:
			return sevenBit(raw)
		}
		return string(raw)
	}
	b.seen.foreign = b.seen.foreign || c.foreign
	if words == decodeWord || !c.foreign {
		if decoded, err := c.encoding.NewDecoder().Bytes(raw); err == nil {
			return string(decoded)
		}
	}
	return string(raw)
}

// bytes decodes the word's base64 or Q encoding, as far as it is valid.
func (w encodedWord) bytes() []byte {
	if w.encoding == 'b' {
		text, _, _ := strings.Cut(w.text, "=")
		raw := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
		n, _ := base64.RawStdEncoding.Decode(raw, []byte(text)) // up to the first error
		return raw[:n]
	}
	raw := make([]byte, 0, len(w.text))
	for i := 0; i < len(w.text); i++ {
		c := w.text[i]
		switch {
		case c == '_':
			c = ' '
		case c == '=' && i+2 < len(w.text):
			var decoded [1]byte
			if _, err := hex.Decode(decoded[:], []byte(w.text[i+1:i+3])); err == nil {
				c = decoded[0]
				i += 2
			}
		}
		raw = append(raw, c)
	}
	return raw
}
