package lists

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"spamgate/blocklist/sender"
	"spamgate/internal/listedit"
)

// recipientPattern is a line of a regexp_table(5) of Postfix for recipients. Postfix takes
// the first line that matches.
type recipientPattern struct {
	regexp string
	name   string   // of the recipients, for a class
	keys   []string // of the list, that match all these recipients; the most specific first
}

// maxRecipientPatterns bounds the patterns: Postfix tries one after the other.
const maxRecipientPatterns = 1000

var errManyRecipients = errors.New("it has lines for too many recipients: Postfix would try a pattern for each; " +
	"let Postfix ask the gate as a policy service instead (docs/policy-service.md)")

// recipientPatterns returns patterns for the recipients' sides of a list, so that the first
// one that matches a recipient has all the keys that do.
func recipientPatterns(keys []string) (patterns []recipientPattern, err error) {
	var addresses, domains, locals []string
	for _, key := range keys {
		switch listedit.KindOf(key) {
		case sender.KindAddress:
			addresses = append(addresses, key)
		case sender.KindLocal:
			locals = append(locals, key)
		default:
			domains = append(domains, key)
		}
	}
	addresses = append(addresses, taggedAddresses(addresses, locals)...)
	if len(addresses)+len(domains)*(len(locals)+1)+len(locals) > maxRecipientPatterns {
		return nil, errManyRecipients
	}
	slices.SortFunc(addresses, taggedFirst)
	slices.SortFunc(locals, taggedFirst)
	slices.SortFunc(domains, narrowFirst)
	matching := func(some ...string) (all []string) {
		for _, key := range some {
			for _, key := range append([]string{key}, listedit.Covering(key, listedit.KindOf(key))...) {
				if slices.Contains(keys, key) && !slices.Contains(all, key) {
					all = append(all, key)
				}
			}
		}
		return all
	}
	add := func(pattern, name string, keys []string) {
		if !slices.ContainsFunc(patterns, func(p recipientPattern) bool { return p.regexp == pattern }) {
			patterns = append(patterns, recipientPattern{pattern, name, keys})
		}
	}
	for _, key := range addresses {
		add(keyRegexp(key), key, matching(key))
	}
	for _, domain := range domains {
		for _, local := range locals {
			name := strings.TrimSuffix(local, "@")
			add(recipientRegexp(name, domain), name+"@"+domainName(domain), matching(domain, local))
		}
		add(keyRegexp(domain), domain, matching(domain))
	}
	for _, local := range locals {
		add(keyRegexp(local), local, matching(local))
	}
	return patterns, nil
}

// taggedAddresses returns the addresses that an address without a tag and a local part with
// one have in common, as user@example.com and user+tag@ have user+tag@example.com.
func taggedAddresses(addresses, locals []string) (common []string) {
	for _, local := range locals {
		base, _, tagged := strings.Cut(local, "+")
		for _, key := range addresses {
			if at := strings.LastIndexByte(key, '@'); tagged && key[:at] == base {
				common = append(common, strings.TrimSuffix(local, "@")+key[at:])
			}
		}
	}
	return slices.DeleteFunc(common, func(key string) bool { return slices.Contains(addresses, key) })
}

// taggedFirst orders keys with local parts. Those with a tag are more specific.
func taggedFirst(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(b, "+"), strings.Count(a, "+")), strings.Compare(a, b))
}

// narrowFirst orders keys of domains: the more labels, the more specific.
func narrowFirst(a, b string) int {
	labels := func(key string) int { return strings.Count(domainName(key), ".") }
	wide := func(key string) int {
		if listedit.KindOf(key) == sender.KindDomain {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(labels(b), labels(a)), cmp.Compare(wide(a), wide(b)), strings.Compare(a, b))
}

func domainName(key string) string {
	return strings.TrimPrefix(strings.TrimPrefix(key, "@"), "*.")
}

// keyRegexp returns a regular expression for the recipients that a key matches.
func keyRegexp(key string) string {
	switch at := strings.LastIndexByte(key, '@'); listedit.KindOf(key) {
	case sender.KindAddress:
		return recipientRegexp(key[:at], key[at:])
	case sender.KindLocal:
		return recipientRegexp(key[:at], "")
	}
	return recipientRegexp("", key)
}

// recipientRegexp returns a regular expression for the recipients with a local part ("" is
// any) at the domain of a key ("" is any). Postfix ignores case.
func recipientRegexp(local, domain string) string {
	start := ""
	if local != "" {
		start = "^" + localRegexp(local)
	}
	name := nameRegexp(domainName(domain))
	switch {
	case domain == "":
		return start + "@"
	case domain[0] == '@':
		return start + "@" + name + "$"
	case strings.HasPrefix(domain, "*."):
		return start + "@([^@]*\\.)" + name + "$"
	}
	return start + "@([^@]*\\.)?" + name + "$"
}

// localRegexp returns a regular expression for a local part, with any tag if it has none, and
// with or without quotes.
func localRegexp(local string) string {
	text, quoted := strings.CutPrefix(local, `"`)
	if quoted {
		text = unescape.ReplaceAllString(strings.TrimSuffix(text, `"`), "$1")
	}
	pattern := regexp.QuoteMeta(text)
	if strings.IndexByte(text[min(1, len(text)):], '+') < 0 {
		pattern += `(\+[^@]*)?`
	}
	if quoted {
		pattern = `"?` + pattern + `"?`
	}
	return strings.ReplaceAll(pattern, "/", `\/`)
}

var unescape = regexp.MustCompile(`\\(.)`)

// nameRegexp returns a regular expression for a domain. Postfix looks up what the client
// wrote, so an international domain has two forms.
func nameRegexp(name string) string {
	pattern := regexp.QuoteMeta(name)
	if u, err := idna.Punycode.ToUnicode(name); err == nil && u != name {
		pattern = "(" + pattern + "|" + regexp.QuoteMeta(u) + ")"
	}
	return strings.ReplaceAll(pattern, "/", `\/`)
}
