package listfile

import (
	"strconv"
	"strings"

	"spamgate/blocklist/sender"
)

var (
	errSpeaksFor = unsupported{what: "a score below 0, which favours the sender", hint: "put it in a list of type allow", spares: true}
	errFlag      = unsupported{what: "a flag of rspamd's whitelist module, which depends on authentication", hint: errAuth.hint}
)

// rspamdLine reads a line of an rspamd map: a key, which may be quoted, and perhaps
// a value. A number is a score and is ignored; a text is the reason.
func rspamdLine(o *output, line int, text string) {
	s, reason, note := splitComment(trim(text))
	s = trim(s)
	key, value := cutPattern(s)
	if strings.HasPrefix(s, "/") {
		o.put(line, s, Entry{}, errRegexp) // it may contain white space
		return
	}
	e, err := o.rspamdKey(unquoteKey(key))
	if err == nil {
		e.Reason, e.Note, e.Until, err = splitUntil(reason, note)
		score, number := strconv.ParseFloat(value, 64)
		if e.Reason == "" && value != "" && number != nil {
			e.Reason = value
		}
		if err == nil && score < 0 && !o.options.Allow {
			err = errSpeaksFor
		}
		if err == nil && isFlag(value) {
			err = errFlag
		}
	}
	o.put(line, key, e, err)
}

// isFlag reports whether a value is a flag of the module whitelist: bl:, wl: or
// both:, and a score, whose effect depends on SPF, DKIM or DMARC.
func isFlag(value string) bool {
	flag, score, _ := strings.Cut(value, ":")
	_, err := strconv.ParseFloat(score, 64)
	return err == nil && (flag == "bl" || flag == "wl" || flag == "both")
}

// unquoteKey removes quotes around a whole key.
func unquoteKey(s string) string {
	if len(s) > 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// rspamdKey parses a key. Maps are looked up with whole addresses or domains, so a
// domain does not include its subdomains. Globs are read if an entry can express
// them.
func (o *output) rspamdKey(s string) (Entry, error) {
	switch {
	case s == "<>":
		return Entry{Key: "<>", Kind: sender.KindNull}, nil
	case isClient(s), strings.Count(s, ":") > 1 && !strings.Contains(s, "@"):
		return Entry{}, errClient
	case strings.ContainsAny(s, "*?"):
		if e, err := o.pattern(s); err != errNoAt {
			return e, err
		}
		return Entry{}, errGlob
	case s != "" && s[0] == '@':
		return atDomain(s[1:])
	case strings.HasSuffix(s, "@"):
		return local(s[:len(s)-1])
	case strings.Contains(s, "@"):
		return address(s)
	case strings.HasPrefix(s, "."):
		return domain(s[1:], sender.KindDomain, o.options)
	}
	return o.exactly(s)
}
