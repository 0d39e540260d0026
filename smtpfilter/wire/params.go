package wire

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"spamgate/internal/text"
)

// parameter is a parameter of MAIL or RCPT.
type parameter struct {
	needs  extension                        // one of these must be offered
	check  func(value string, t terms) bool // nil if it has no value
	syntax string                           // of the value, for the reply
}

var mailParameters = map[string]parameter{
	"SIZE":        {extSize, isSize, "a number of bytes"},
	"BODY":        {ext8BitMIME | extBinaryMIME, isBodyType, "7BIT or 8BITMIME"},
	"SMTPUTF8":    {extSMTPUTF8, nil, "without a value"},
	"REQUIRETLS":  {extRequireTLS, nil, "without a value"},
	"RET":         {extDSN, isReturn, "FULL or HDRS"},
	"ENVID":       {extDSN, isEnvelopeID, "xtext of at most 100 characters"},
	"BY":          {extDeliverBy, isDeliverBy, "SECONDS;MODE (RFC 2852)"},
	"MT-PRIORITY": {extPriority, isPriority, "-9 to 9"},
	"AUTH":        {extAuth, isSubmitter, "an address in xtext, or <>"},
}

var rcptParameters = map[string]parameter{
	"NOTIFY": {extDSN, isNotify, "NEVER, or a list of SUCCESS, FAILURE, DELAY"},
	"ORCPT":  {extDSN, isOriginalRecipient, "TYPE;ADDRESS of at most 500 characters, in xtext"},
}

// addParam validates one ESMTP parameter (RFC 5321, section 4.1.2) of an extension that
// EHLO offers. It keeps the parameter as received.
func (cmd *Command) addParam(param string, t terms) Reply {
	key, value, hasValue := strings.Cut(param, "=")
	if !validKeyword(key) || hasValue && !validValue(value) {
		return NewReply(501, "5.5.4 Malformed parameter")
	}
	key = strings.ToUpper(key)
	known := rcptParameters
	if cmd.Verb == "MAIL" {
		known = mailParameters
	}
	p := known[key]
	if p.needs&t.offered == 0 {
		return NewReply(555, "5.5.4 "+cmd.Verb+" parameter "+key+" is not offered")
	}
	if hasValue != (p.check != nil) || hasValue && !p.check(value, t) {
		return NewReply(501, "5.5.4 "+key+" must be "+p.syntax)
	}
	switch key {
	case "SIZE":
		cmd.Size, _ = strconv.ParseInt(value, 10, 64)
	case "SMTPUTF8":
		cmd.UTF8 = true
	case "REQUIRETLS":
		cmd.RequireTLS = true
	}
	cmd.Params = append(cmd.Params, param)
	return Reply{}
}

// keyword returns the name of a parameter.
func keyword(param string) string {
	key, _, _ := strings.Cut(param, "=")
	return key
}

func validKeyword(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && (s[i] != '-' || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// validValue reports whether s is an esmtp-value (RFC 5321, section 4.1.2). It accepts
// bytes beyond ASCII, which the parameters' own checks allow in ORCPT only.
func validValue(s string) bool {
	return s != "" && all(s, func(c byte) bool { return c > ' ' && c != 0x7f && c != '=' })
}

// isSize reports whether s is RFC 1870's size-value, of up to 20 digits.
func isSize(s string, _ terms) bool {
	_, err := strconv.ParseUint(s, 10, 63)
	return err == nil && len(s) <= 20
}

func isBodyType(s string, t terms) bool {
	switch strings.ToUpper(s) {
	case "7BIT", "8BITMIME":
		return true
	case "BINARYMIME":
		return t.offered&extBinaryMIME != 0
	}
	return false
}

// isReturn checks the value of RET (RFC 3461, section 4.3).
func isReturn(s string, _ terms) bool {
	return strings.EqualFold(s, "FULL") || strings.EqualFold(s, "HDRS")
}

// isEnvelopeID checks the value of ENVID (RFC 3461, section 4.4): printable text in
// xtext.
func isEnvelopeID(s string, _ terms) bool {
	id, ok := decodeXtext(s)
	return ok && len(s) <= 100 && isText(id)
}

// isDeliverBy checks the value of BY (RFC 2852, section 4): a time of up to nine
// digits, and what is to happen then. To return the message, the time must be
// positive.
func isDeliverBy(s string, _ terms) bool {
	by, mode, ok := strings.Cut(s, ";")
	digits := strings.TrimPrefix(by, "-")
	if len(digits) == len(by) {
		digits = strings.TrimPrefix(by, "+")
	}
	seconds, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || len(digits) > 9 {
		return false
	}
	switch strings.ToUpper(mode) {
	case "N", "NT":
		return true
	case "R", "RT":
		return seconds > 0 && by[0] != '-'
	}
	return false
}

// isPriority checks the value of MT-PRIORITY (RFC 6710, section 4.1).
func isPriority(s string, _ terms) bool {
	digit := strings.TrimPrefix(s, "-")
	return len(digit) == 1 && '0' <= digit[0] && digit[0] <= '9' && s != "-0"
}

// isSubmitter checks the value of MAIL's AUTH (RFC 4954, section 5): an address in
// xtext, or <>.
func isSubmitter(s string, _ terms) bool {
	if s == "<>" {
		return true
	}
	addr, ok := decodeXtext(s)
	if !ok || !isText(addr) {
		return false
	}
	path, rest, err := parsePath("<" + addr + ">")
	return err == nil && rest == "" && path.Domain() != ""
}

// isNotify checks the value of NOTIFY (RFC 3461, section 4.1): NEVER, or some of the
// others, each once.
func isNotify(s string, _ terms) bool {
	if strings.EqualFold(s, "NEVER") {
		return true
	}
	seen := ""
	for word := range strings.SplitSeq(strings.ToUpper(s), ",") {
		if word != "SUCCESS" && word != "FAILURE" && word != "DELAY" || strings.Contains(seen, word) {
			return false
		}
		seen += word
	}
	return true
}

// isOriginalRecipient checks the value of ORCPT (RFC 3461, section 4.2): a type and an
// address in xtext. The type utf-8 has its own encoding (RFC 6533, section 3), and may
// be plain UTF-8 if the transaction has SMTPUTF8.
func isOriginalRecipient(s string, t terms) bool {
	kind, addr, ok := strings.Cut(s, ";")
	if !ok || len(s) > 500 || addr == "" || !isAtom(kind) {
		return false
	}
	if strings.EqualFold(kind, "utf-8") {
		return (t.utf8 || text.IsASCII(addr)) && isUTF8Address(addr)
	}
	text, ok := decodeXtext(addr)
	return ok && isText(text)
}

// isUTF8Address reports whether s is RFC 6533's utf-8-addr-xtext or
// utf-8-addr-unitext: ASCII without '+' and '=', characters as \x{HEX}, and plain ones
// beyond ASCII. All of them must show in a log.
func isUTF8Address(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if rest, ok := strings.CutPrefix(s, `\x{`); ok {
			hex, after, ok := strings.Cut(rest, "}")
			code, err := strconv.ParseUint(hex, 16, 32)
			if !ok || err != nil || len(hex) < 2 || len(hex) > 6 || hex != strings.ToUpper(hex) {
				return false
			}
			r, s = rune(code), after
			if r < ' ' || r == 0x7f || !utf8.ValidRune(r) {
				return false
			}
		} else {
			if r == '\\' || r == '+' {
				return false
			}
			s = s[size:]
		}
		if r >= utf8.RuneSelf && checkLocalUTF8(string(r)) == errPathInvisible {
			return false
		}
	}
	return true
}

func isAtom(s string) bool { return s != "" && all(s, isAtext) }

// isText reports whether s is graphic ASCII and spaces.
func isText(s string) bool { return all(s, func(c byte) bool { return c >= ' ' && c <= '~' }) }
