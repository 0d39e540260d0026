package sender

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"spamgate/internal/text"
)

// NormalizeLocal returns the normal form of a local part alone, as a list
// entry "user@" has it: folded, in NFC, quoted only where it must be.
func NormalizeLocal(s string) (string, error) {
	if err := checkText(s); err != nil {
		return "", err
	}
	if s == "" {
		return "", errNoLocal
	}
	return normalizeLocal(s)
}

func normalizeLocal(s string) (string, error) {
	content, err := unquote(s)
	if err != nil {
		return "", err
	}
	return quote(fold(content)), nil
}

// QuoteLocal returns a local part that is known without its quotes as it stands in an
// address: quoted only where it must be, in upper and lower case as it is.
func QuoteLocal(content string) string { return quote(content) }

// unquote returns the content of a local part: words between dots, each plain
// or a quoted string (RFC 5322's local-part and obs-local-part). Between the
// dots a word may be empty.
func unquote(s string) (string, error) {
	if !strings.Contains(s, `"`) {
		return s, checkPlain(s)
	}
	var content strings.Builder
	for {
		word, rest := "", ""
		if strings.HasPrefix(s, `"`) {
			n := appendQuoted(&content, s)
			if n == 0 {
				return "", errOpenQuote
			}
			rest = s[n:]
			if rest != "" && rest[0] != '.' {
				return "", errors.New("text right after a closing quote")
			}
		} else {
			n := strings.IndexByte(s, '.')
			if n < 0 {
				n = len(s)
			}
			word, rest = s[:n], s[n:]
			if strings.Contains(word, `"`) {
				return "", errors.New("a quote in the middle of a word")
			}
			if err := checkPlain(word); err != nil {
				return "", err
			}
			content.WriteString(word)
		}
		if rest == "" {
			return content.String(), nil
		}
		content.WriteByte('.')
		s = rest[1:]
	}
}

// appendQuoted appends the content of the quoted string that s starts with and
// returns the string's length, quotes included; 0 if it does not end.
func appendQuoted(content *strings.Builder, s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			if i++; i == len(s) {
				return 0
			}
		}
		content.WriteByte(s[i])
	}
	return 0
}

// checkPlain refuses what may not stand outside quotes. Beyond ASCII all may
// (RFC 6531, section 3.3).
func checkPlain(s string) error {
	for i := range len(s) {
		if c := s[i]; c < utf8.RuneSelf && class[c]&atext == 0 {
			if c == '@' {
				return errors.New(`more than one "@" outside quotes`)
			}
			return fmt.Errorf("%s outside quotes in the local part", name(rune(c)))
		}
	}
	return nil
}

// quote returns content as a local part: as it is where it can stand so, else
// as one quoted string that escapes only what it must.
func quote(content string) string {
	if !needsQuotes(content) {
		return content
	}
	var b strings.Builder
	b.Grow(len(content) + 2)
	b.WriteByte('"')
	for i := range len(content) {
		if c := content[i]; c == '"' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(content[i])
	}
	b.WriteByte('"')
	return b.String()
}

// needsQuotes reports whether content has to be quoted as a local part.
func needsQuotes[T string | []byte](content T) bool {
	for i := range len(content) {
		if c := content[i]; c < utf8.RuneSelf && class[c]&atext == 0 {
			return true
		}
	}
	return len(content) == 0
}

// fold gives s the form in which spellings are compared: Unicode's canonical
// caseless matching (The Unicode Standard, section 3.13, D145), which folds
// the decomposed text, composed again at the end. Folding the composed text
// would miss the iota subscript, whose place among combining marks changes
// when it folds to a letter.
func fold(s string) string {
	if text.IsASCII(s) {
		return strings.ToLower(s)
	}
	s = cases.Fold().String(norm.NFD.String(s))
	return norm.NFC.String(strings.Map(foldCherokee, s))
}

// foldCherokee corrects x/text, which swaps the cases of Cherokee instead of
// folding small letters to the older capitals (golang.org/issue/46101).
func foldCherokee(r rune) rune {
	switch {
	case 0xAB70 <= r && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case 0x13F8 <= r && r <= 0x13FD:
		return r - 0x13F8 + 0x13F0
	}
	return r
}
