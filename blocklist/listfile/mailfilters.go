package listfile

import (
	"errors"
	"strconv"
	"strings"

	"spamgate/blocklist/sender"
)

var (
	errNoAt    = errors.New(`a pattern without an "@", which SpamAssassin compares with whole addresses and never matches`)
	errAuth    = unsupported{what: "a line that depends on authentication", hint: "authentication is not checked here"}
	errTo      = unsupported{what: "a line about recipients", hint: "recipients are exempt by exempt_recipients in the configuration"}
	errUnblock = unsupported{what: "a line that cancels a blocklist_from, which lets nobody through", hint: "write welcomelist_from to let senders through"}
	errUnallow = unsupported{what: "a line that cancels an exemption", hint: "remove the exemption from the list"}
)

// settingNames unifies the names of settings: SpamAssassin treats hyphens as
// underscores, and knows older names.
var settingNames = strings.NewReplacer("-", "_", "blacklist", "blocklist", "whitelist", "welcomelist")

// spamAssassinLine reads a line of Mail::SpamAssassin::Conf: a setting, then
// patterns of addresses. It skips other settings.
func spamAssassinLine(o *output, line int, text string) {
	text, comment, _ := strings.Cut(text, "#")
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return // other white space
	}
	setting := settingNames.Replace(strings.ToLower(fields[0]))
	var allows bool
	var whole error
	switch setting {
	case "blocklist_from":
	case "welcomelist_from", "def_welcomelist_from":
		allows = true
	case "unblocklist_from":
		allows = true
		if o.options.Allow {
			whole = errUnblock
		}
	case "unwelcomelist_from":
		whole = errUnallow
	case "welcomelist_auth", "def_welcomelist_auth", "unwelcomelist_auth", "welcomelist_from_rcvd", "def_welcomelist_from_rcvd",
		"unwelcomelist_from_rcvd", "welcomelist_from_spf", "def_welcomelist_from_spf", "welcomelist_from_dkim", "def_welcomelist_from_dkim",
		"unwelcomelist_from_dkim", "welcomelist_allows_relays":
		whole = errAuth
	case "blocklist_to", "welcomelist_to", "more_spam_to", "all_spam_to":
		whole = errTo
	default:
		if strings.ContainsAny(setting, ".@") {
			o.refuse(line, Problem{Text: text, What: "not a setting of SpamAssassin", Hint: "a line reads blocklist_from *@example.com"})
			return
		}
		o.remark(noteSetting, line, text)
		return
	}
	if whole != nil {
		o.put(line, text, Entry{}, whole)
		return
	}
	if len(fields) == 1 {
		o.refuse(line, Problem{Text: text, What: "a setting without an address", Hint: "add the address"})
		return
	}
	for _, pattern := range fields[1:] {
		e, err := o.pattern(pattern)
		if err == nil {
			e, err = o.judged(e, allows)
		}
		if err == nil {
			e, err = commented(e, comment)
		}
		o.put(line, pattern, e, err)
	}
}

// pattern parses a file-glob pattern of addresses, as far as an entry can express
// it.
func (o *output) pattern(s string) (Entry, error) {
	user, host, ok := strings.Cut(s, "@")
	switch {
	case s == "*", s == "*@*", s == "*@", s == "@*":
		return Entry{}, errEverything
	case strings.Contains(s, "?"):
		return Entry{}, errGlob
	case !ok && strings.HasPrefix(s, "*."):
		return o.below(s[2:])
	case !ok && strings.Contains(s, "*"):
		return Entry{}, errGlob
	case !ok:
		return Entry{}, errNoAt
	case user == "*" && strings.HasPrefix(host, "*."):
		return o.below(host[2:])
	case user == "*" && !strings.Contains(host, "*"):
		return atDomain(host)
	case host == "*" && user != "" && !strings.Contains(user, "*"):
		return local(user)
	case strings.Contains(s, "*"):
		return Entry{}, errGlob
	}
	return address(s)
}

// below parses the name of *.name, which means its subdomains alone.
func (o *output) below(name string) (Entry, error) {
	if strings.Contains(name, "*") {
		return Entry{}, errGlob
	}
	return domain(name, sender.KindSubdomains, o.options)
}

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
