package listfile

import (
	"errors"
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
