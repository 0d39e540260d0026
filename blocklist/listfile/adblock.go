package listfile

import (
	"bytes"
	"cmp"
	"errors"
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

// adblock reads a list for ad blockers. There an exception cancels the rules for all names
// below its own, wherever they stand: after the last line it becomes an exception for each
// of these names as well.
type adblock struct {
	// rules are the keys of the rules that exceptions cancel, a line each.
	rules []byte

	// passed are the lines of the exceptions by what they pass: example.com with the names
	// below it, or *.example.com.
	passed map[string]int
}

// line reads a rule. Rules for whole domains are entries: ||example.com^ and, as an
// exception, @@||example.com^. As in lists for DNS filters, a bare name is that name alone,
// and lines of hosts files are accepted.
func (a *adblock) line(o *output, line int, text string) {
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
			content, _, _ := strings.Cut(text, "#")
			for _, name := range strings.Fields(content)[1:] {
				if e, err := o.exactly(name); err == nil {
					a.rules = append(append(a.rules, e.Key...), '\n')
				}
			}
			return
		}
	}
	rule, allows := strings.CutPrefix(s, "@@")
	rule, bad := strings.CutSuffix(rule, "$badfilter")
	pattern, options, limited := strings.Cut(rule, "$")
	e, err := o.adblockRule(rule, pattern, options, limited, allows && !o.options.Allow)
	switch {
	case bad && (allows || o.options.Allow):
		err = cmp.Or(err, error(errBadFilter))
	case err != nil && allows && !o.options.Allow:
		e, err = o.unreadException(line, s, pattern, options, err)
	case err != nil:
	case bad: // cancels the rule of the same text, and no other
		e.Exception = true
		o.put(line, s, e, nil)
		return
	default:
		e, err = o.judged(e, allows)
	}
	if err == nil && !o.options.Allow {
		a.note(o, line, e, pattern, options)
	}
	o.put(line, s, e, err)
}

// note notes an entry for what exceptions do. An $important rule is not cancelled by one for a
// domain above.
func (a *adblock) note(o *output, line int, e Entry, pattern, options string) {
	switch {
	case !e.Exception && !slices.Contains(strings.Split(options, ","), "important"):
		a.rules = append(append(a.rules, e.Key...), '\n')
	case e.Exception && (e.Kind != sender.KindAtDomain || !strings.HasPrefix(pattern, "|") || strings.HasPrefix(pattern, "||")):
		if a.passed == nil {
			a.passed = map[string]int{}
		}
		name := strings.TrimPrefix(e.Key, "@") // in an exact list the names below it as well
		a.passed[name] = cmp.Or(a.passed[name], line)
		o.alone(line, e)
	}
}

// alone passes on that an exception also cancels a rule for its name alone, which is more specific.
func (o *output) alone(line int, e Entry) {
	if e.Kind == sender.KindDomain {
		o.add(Entry{Key: "@" + e.Key, Kind: sender.KindAtDomain, Exception: true, Line: line})
	}
}

// last passes on an exception for each rule that one for a domain above it cancels.
func (a *adblock) last(o *output) {
	if a.passed == nil {
		return
	}
	done := map[string]bool{}
	for rule := range bytes.Lines(a.rules) {
		key := string(bytes.TrimSuffix(rule, []byte("\n")))
		e := Entry{Key: key, Kind: sender.KindDomain, Exception: true}
		name, below := strings.CutPrefix(key, "*.")
		switch {
		case below:
			e.Kind, e.Line = sender.KindSubdomains, a.passed[name]
		case key[0] == '@':
			e.Kind, name = sender.KindAtDomain, key[1:]
		}
		for _, name, above := strings.Cut(name, "."); above && e.Line == 0; _, name, above = strings.Cut(name, ".") {
			e.Line = cmp.Or(a.passed[name], a.passed["*."+name])
		}
		if e.Line != 0 && !done[key] && a.passed[strings.TrimPrefix(key, "@")] == 0 {
			done[key] = true
			o.add(e)
		}
	}
}

// unreadException returns the error for an exception that cannot be read. It may pass some
// of what rules for its name, or for a domain above, block: for that name they do not count.
func (o *output) unreadException(line int, s, pattern, options string, err error) (Entry, error) {
	var u unsupported
	if !errors.As(err, &u) || slices.Contains(appearance, options) {
		return Entry{}, err
	}
	o.remark(noteUnread, line, s)
	if _, rest, ok := strings.Cut(pattern, "://"); ok {
		pattern = rest
	}
	name := strings.TrimLeft(pattern, "|")
	if pos := strings.IndexAny(name, "/^|:?"); pos >= 0 {
		name = name[:pos]
	}
	if pos := strings.LastIndexByte(name, '*'); pos >= 0 {
		_, name, _ = strings.Cut(name[pos:], ".")
	}
	e, none := o.wide(name)
	if u.spares = none == nil; u.spares {
		o.alone(line, e)
	}
	return e, u
}

// isCosmetic reports whether a rule contains one of ## #@# #?# #$# #%#, which stand
// before a selector. "## text" with a blank is a comment in some lists.
func isCosmetic(s string) bool {
	for rest := s; ; {
		pos := strings.IndexByte(rest, '#')
		if pos < 0 || pos+1 == len(rest) {
			return false
		}
		rest = rest[pos+1:]
		second := strings.TrimLeft(rest, "@?$%")
		if strings.HasPrefix(second, "#") && len(second) > 1 && second[1] != ' ' && second[1] != '#' {
			return true
		}
	}
}

var (
	// wholeDomain are the options with which a rule still applies to every request to a
	// domain.
	wholeDomain = []string{"important", "all", "document", "doc"}

	// appearance are options with which an exception is about rules for the appearance of
	// pages alone.
	appearance = []string{"elemhide", "ehide", "generichide", "ghide", "specifichide", "shide"}
)

// adblockRule reads the pattern of a rule, which its options may limit.
func (o *output) adblockRule(rule, pattern, options string, limited, excepts bool) (Entry, error) {
	if len(rule) > 1 && rule[0] == '/' && (strings.HasSuffix(rule, "/") || strings.Contains(rule, "/$")) {
		return Entry{}, errRegexp
	}
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
	if isClient(pattern) {
		return Entry{}, errClient
	}
	name, wide := strings.CutPrefix(pattern, "||")
	name, begins := strings.CutPrefix(name, "|")
	name, ends := strings.CutSuffix(name, "|")
	name, ended := strings.CutSuffix(name, "^")
	if strings.ContainsAny(name, "/^|") || begins != (!wide && (ends || ended)) {
		return Entry{}, errPart
	}
	if strings.Contains(strings.TrimPrefix(name, "*."), "*") {
		return Entry{}, errGlob
	}
	bare := o.wide
	if !wide && (begins || !excepts) { // "@@name" passes whatever contains the name
		bare = o.exactly
	}
	e, err := o.starred(name, bare)
	if err != nil && !(wide && ended) || limited && !wide && !begins {
		err = errPart // of a page's address
	}
	return e, err
}
