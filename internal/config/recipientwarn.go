package config

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

// earlierMatch is what is asked before a policy.
type earlierMatch struct {
	in      string
	entries []string
}

// unreached finds entries whose recipients have all found an earlier policy.
func (d *document) unreached(path string, entries []string, earlier []earlierMatch) {
	reached, in := false, ""
	hidden := map[int]string{} // what has the recipients of the i-th entry
	for i, entry := range entries {
		if strings.HasPrefix(entry, "!") {
			continue
		}
		if j := slices.IndexFunc(earlier, func(e earlierMatch) bool { return e.has(entry) }); j >= 0 {
			in = earlier[j].in
			hidden[i] = in
		} else {
			reached = true
		}
	}
	if !reached {
		d.fail(path, fmt.Sprintf("matches nobody: %s has all these recipients, and the first match counts", in),
			"move this policy before that one, or remove it")
		return
	}
	for i, in := range hidden {
		d.warn(d.elementOrKey(path, i), fmt.Sprintf("%q has no effect: %s has all these recipients, and the first match counts", entries[i], in),
			"remove it, or move this policy before that one")
	}
}

// has reports whether every recipient of an entry is one of these. With an exception it
// does not know.
func (e earlierMatch) has(entry string) bool {
	if slices.ContainsFunc(e.entries, func(s string) bool { return strings.HasPrefix(s, "!") }) {
		return false
	}
	for _, key := range broader(entry) {
		if slices.Contains(e.entries, key) {
			return true
		}
	}
	return false
}

// broader returns the keys of an entry and of those that match whatever it matches. Those of
// a file are not known.
func broader(entry string) (keys []string) {
	if strings.HasPrefix(entry, schemeFile) {
		return []string{entry}
	}
	if a, err := sender.Parse(entry); err == nil { // user@example.com
		for w := a.Walk(nil); ; {
			key, ok := w.Next()
			if !ok {
				return keys
			}
			keys = append(keys, string(key.Text))
		}
	}
	keys = []string{entry}
	if strings.HasSuffix(entry, "@") || strings.HasPrefix(entry, "@[") {
		return keys
	}
	domain := strings.TrimPrefix(strings.TrimPrefix(entry, "@"), "*.")
	for {
		keys = append(keys, domain)
		_, parent, ok := strings.Cut(domain, ".")
		if !ok {
			return keys
		}
		keys = append(keys, "*."+parent)
		domain = parent
	}
}

// policyLists warns if none of the lists of a policy applies somewhere.
func (d *document) policyLists(path string, lists []string) {
	if len(lists) == 0 || d.failedBelow(path) {
		return
	}
	check := func(where string, own []string) {
		if !slices.ContainsFunc(lists, func(name string) bool { return includes(own, name) }) {
			d.warn(path, fmt.Sprintf("no list counts for these recipients at %s, which has none of these lists", where), "add one of its lists, if senders are to be judged there")
		}
	}
	for _, l := range d.cfg.Listeners {
		check("the listener "+l.Name, l.Lists)
	}
	for _, door := range d.cfg.Doors() {
		if door.Table != TableDNSServer {
			check("the [["+door.Table+"]] "+door.Name, door.Lists)
		}
	}
}

// exempted warns about entries whose recipients are exempt anyway.
func (d *document) exempted(path string, entries []string) {
	for i, entry := range entries {
		if entry == "postmaster@" || slices.Contains(d.cfg.Policy.ExemptRecipients, entry) {
			d.warn(d.elementOrKey(path, i), fmt.Sprintf("%q has no effect: exempt_recipients come first, and postmaster@ is always one", entry),
				"remove it here, or from exempt_recipients of [policy]")
		}
	}
}

// foreign warns about entries for domains whose mail no listener accepts, which are often
// misspelled.
func (d *document) foreign(path string, entries []string) {
	domains := d.cfg.Policy.RecipientDomains
	if _, inFile := d.cfg.Policy.DomainsFile(); inFile || len(domains) == 0 || len(d.cfg.Listeners) == 0 {
		return
	}
	for i, entry := range entries {
		at := strings.LastIndexByte(entry, '@')
		domain := strings.TrimPrefix(entry[at+1:], "*.")
		if domain == "" || strings.HasPrefix(entry, schemeFile) || strings.HasPrefix(entry, "!") {
			continue
		}
		ours := slices.ContainsFunc(domains, func(own string) bool {
			tree := strings.HasPrefix(own, ".")
			own = strings.TrimPrefix(own, ".")
			return domain == own || tree && strings.HasSuffix(domain, "."+own) || at < 0 && strings.HasSuffix(own, "."+domain)
		})
		if !ours {
			d.warn(d.elementOrKey(path, i), fmt.Sprintf("%q names nobody of recipient_domains in [policy]", entry), "correct it, or add its domain there")
		}
	}
}

// unasked warns about policies that nobody asks.
func (d *document) unasked() {
	asks := func(door Door) bool { return door.Table != TableDNSServer }
	if len(d.cfg.RecipientPolicies) > 0 && len(d.cfg.Listeners) == 0 && !slices.ContainsFunc(d.cfg.Doors(), asks) {
		d.warn(element(TableRecipientPolicy, 0), "has no effect: a question over DNS names no recipient", "remove it, or add a [[listener]], a [[milter]] or a [[policy_service]]")
	}
}
