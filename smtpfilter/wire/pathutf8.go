package wire

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"spamgate/internal/text"
)

// The reasons to refuse an address beyond ASCII with SMTPUTF8.
var (
	errPathUTF8      = errors.New("not valid UTF-8")
	errPathInvisible = errors.New("characters that do not show are not accepted")
	errPathLookAlike = errors.New("characters that stand for ASCII punctuation are not accepted")
)

// checkPathUTF8 checks an address that is not all ASCII.
func checkPathUTF8(p Path) error {
	if !utf8.ValidString(p.addr) {
		return errPathUTF8
	}
	if err := checkLocalUTF8(p.LocalPart()); err != nil {
		return err
	}
	if domain := p.Domain(); !text.IsASCII(domain) {
		return checkDomainUTF8(domain)
	}
	return nil
}

// checkLocalUTF8 refuses characters that a log shows wrongly or not at all (controls,
// separators, changes of direction, spaces, fillers, unassigned ones), and those that
// become ASCII punctuation, '@' above all, in a server that normalizes (Unicode annex
// 15).
func checkLocalUTF8(s string) error {
	for _, r := range s {
		if r < utf8.RuneSelf {
			continue
		}
		if !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return errPathInvisible
		}
		for _, d := range norm.NFKD.String(string(r)) {
			if d < utf8.RuneSelf && !isAlnum(byte(d)) {
				return errPathLookAlike
			}
		}
	}
	return nil
}

// checkDomainUTF8 accepts labels of letters, marks, digits, '-' and '_' (RFC 5890,
// section 2.3.2.1) that IDNA does not map to something else: no dots but '.', such as
// U+3002, and no full-width forms.
func checkDomainUTF8(domain string) error {
	if err := checkLocalUTF8(domain); err != nil {
		return err
	}
	if len(domain) > 255 {
		return errPathDomain
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(domain, "."), ".") {
		for i, r := range label {
			switch {
			case r < utf8.RuneSelf:
			case !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r),
				i == 0 && unicode.IsMark(r),
				!norm.NFKC.IsNormalString(string(r)):
				return errPathDomain
			}
		}
		ascii, err := idna.Punycode.ToASCII(label)
		if err != nil || ascii == "" || len(ascii) > 63 {
			return errPathDomain
		}
	}
	return nil
}
