package listfile

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

var (
	errCosmetic  = unsupported{what: "a rule about the appearance of pages"}
	errBadFilter = unsupported{what: "a $badfilter, which cancels another rule", hint: "remove both rules"}
	errPart      = unsupported{what: "a rule for some addresses of pages", hint: "a rule for a whole domain reads ||example.com^"}
)

// adblockLine reads a rule for an ad blocker. Rules for whole domains are entries:
// ||example.com^ and, as an exception, @@||example.com^. As in lists for DNS
// filters, a bare name is that name alone, and lines of hosts files are accepted.
func adblockLine(o *output, line int, text string) {
	s := trim(text)
	switch {
	case s[0] == '[' && s[len(s)-1] == ']': // [Adblock Plus 2.0]
		return
	case isCosmetic(s):
		o.put(line, s, Entry{}, errCosmetic)
		return
	case s[0] == '#':
		return
	}
	if first, _ := cutPattern(s); len(first) < len(s) {
		if _, err := hostAddress(first); err == nil {
			if o.options.Allow {
				o.put(line, s, Entry{}, errBlocks)
				return
			}
			hostsLine(o, line, text)
			return
		}
	}
	rule, allows := strings.CutPrefix(s, "@@")
	rule, bad := strings.CutSuffix(rule, "$badfilter")
	e, err := o.adblockRule(rule)
	switch {
	case err != nil:
	case bad && (allows || o.options.Allow):
		err = errBadFilter
	case bad: // cancels the rule of the same text, and no other
		e.Exception = true
		o.put(line, s, e, nil)
		return
	default:
		e, err = o.judged(e, allows)
	}
	if err == nil && e.Exception && e.Kind == sender.KindDomain {
		// The exception also cancels a rule for the name alone, which is more specific.
		alone := Entry{Key: "@" + e.Key, Kind: sender.KindAtDomain, Exception: true}
		o.put(line, s, alone, nil)
	}
	o.put(line, s, e, err)
}

// isCosmetic reports whether a rule contains one of ## #@# #?# #$# #%#, which stand
// before a selector. "## text" with a blank is a comment in some lists.
func isCosmetic(s string) bool {
	for rest := s; ; {
		at := strings.IndexByte(rest, '#')
		if at < 0 || at+1 == len(rest) {
			return false
		}
		rest = rest[at+1:]
		second := strings.TrimLeft(rest, "@?$%")
		if strings.HasPrefix(second, "#") && len(second) > 1 && second[1] != ' ' && second[1] != '#' {
			return true
		}
	}
}

// wholeDomain are the options with which a rule still applies to every request to a
// domain.
var wholeDomain = []string{"important", "all", "document", "doc"}

func (o *output) adblockRule(rule string) (Entry, error) {
	if len(rule) > 1 && rule[0] == '/' && (strings.HasSuffix(rule, "/") || strings.Contains(rule, "/$")) {
		return Entry{}, errRegexp
	}
	pattern, options, limited := strings.Cut(rule, "$")
	if limited {
		for option := range strings.SplitSeq(options, ",") {
			if !slices.Contains(wholeDomain, option) {
				return Entry{}, unsupported{
					what: fmt.Sprintf("the option %q, which limits or changes the rule", clip(option)),
					hint: "a rule for a whole domain reads ||example.com^",
				}
			}
		}
	}
	name, anchored := strings.CutPrefix(pattern, "||")
	if !anchored {
		if isClient(name) {
			return Entry{}, errClient
		}
		if e, err := o.exactly(name); err == nil && !limited {
			return e, nil
		}
		return Entry{}, errPart
	}
	name, ended := strings.CutSuffix(strings.TrimSuffix(name, "|"), "^")
	if !ended || strings.ContainsAny(name, "/^|") {
		return Entry{}, errPart
	}
	if strings.Contains(strings.TrimPrefix(name, "*."), "*") {
		return Entry{}, errGlob
	}
	return o.starred(name, o.wide)
}
