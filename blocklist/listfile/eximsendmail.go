package listfile

import (
	"cmp"
	"errors"
	"strings"
)

var (
	errNotSender = unsupported{what: "a line that is not about senders", hint: "lines about senders begin with From: or have no such word"}
	errSkip      = unsupported{what: "the action SKIP, which is about hosts", hint: "write OK to let senders through"}
	errDotKey    = errors.New("a dot before the domain, which is never looked up; write *.example.com for subdomains")
	errNull      = errors.New("the null sender, which is never looked up")
)

// eximLine reads a line of a file for Exim's lsearch: a key, which may be quoted, a colon or
// white space, and data. Whether they refuse depends on the ACL. Here they do, unless the data
// is a word that lets through.
func eximLine(o *output, text string) (string, Entry, error) {
	pos := unquotedIndex(text, func(i int) bool { return isBlank(text[i]) || text[i] == ':' })
	key, data := text, ""
	if pos >= 0 {
		key, data = text[:pos], trim(strings.TrimPrefix(trim(text[pos:]), ":"))
	}
	e, err := o.eximKey(unquoteKey(key))
	if err != nil {
		return key, e, err
	}
	switch word := strings.ToLower(data); word {
	case "", "reject", "deny", "drop", "block", "blocked", "yes", "true", "1", "*":
		e, err = o.judged(e, false)
	case "defer":
		e.Defer = true
		e, err = o.judged(e, false)
	case "accept", "allow", "ok", "pass", "permit", "whitelist", "no", "false", "0":
		e, err = o.judged(e, true)
	case "discard", "blackhole":
		if err = errDiscard; o.options.Discard {
			e, err = o.judged(e, false)
		}
	default:
		e.Reason = data
		e, err = o.judged(e, false)
	}
	return key, e, err
}

// eximKey parses a key. An address list looks up the address, and with lsearch*@ also *@ and
// its domain. A domain list, and *@lsearch, look up the domain, with wildlsearch also *. and
// what it is below.
func (o *output) eximKey(s string) (Entry, error) {
	switch {
	case s == "*":
		return Entry{}, errEverything
	case isClient(s), strings.Count(s, ":") > 1 && !strings.Contains(s, "@"):
		return Entry{}, errClient
	case strings.HasPrefix(s, "^"):
		return Entry{}, errRegexp
	case s != "" && s[0] == '@':
		return Entry{}, errAtDomain
	case s != "" && s[0] == '.':
		return Entry{}, errDotKey
	case strings.HasPrefix(s, "*@"):
		return atDomain(s[2:])
	case strings.Contains(s, "@"):
		return address(s)
	case strings.Contains(strings.TrimPrefix(s, "*."), "*"):
		return Entry{}, errGlob
	}
	return o.starred(s, o.exactly)
}

// sendmailLine reads a line of Sendmail's access database: a key, perhaps after From:, white
// space and an action.
func sendmailLine(o *output, text string) (string, Entry, error) {
	pattern, action := cutPattern(text)
	key := pattern
	if tag, rest, tagged := strings.Cut(pattern, ":"); tagged && strings.EqualFold(tag, "from") {
		key = rest
	} else if tagged && !strings.ContainsAny(tag, `@"`) && !isClient(pattern) {
		return pattern, Entry{}, errNotSender
	}
	switch key {
	case "":
		return pattern, Entry{}, errEmpty
	case "<>":
		return pattern, Entry{}, errNull
	}
	e, err := o.postfixPattern(key)
	if err != nil {
		return pattern, e, err
	}
	if len(action) >= 6 && strings.EqualFold(action[:6], "error:") {
		action = strings.Trim(action[6:], `"`)
		if status, rest, ok := strings.Cut(action, ":"); ok && withoutStatus(status+" ") == "" {
			action = strings.Trim(rest, `"`)
		}
		action = cmp.Or(action, "REJECT")
	}
	word, rest := cutPattern(action)
	isCode := len(word) == 3 && isNumber(word) && (word[0] == '4' || word[0] == '5')
	switch upper := strings.ToUpper(word); {
	case upper == "SKIP":
		return pattern, e, errSkip
	case upper == "", upper == "REJECT", upper == "DISCARD", upper == "OK", upper == "RELAY", strings.HasPrefix(upper, "QUARANTINE:"):
	case isCode && rest == "" && word[0] == '4':
		action = "DEFER"
	case isCode && rest == "":
		action = "REJECT"
	case !isCode: // any other text is that of a refusal
		action = "REJECT " + action
	}
	e, err = o.postfixAction(e, action)
	return pattern, e, err
}
