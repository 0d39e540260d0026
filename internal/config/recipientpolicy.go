package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// TableRecipientPolicy is the name of the tables of recipients with a say.
const TableRecipientPolicy = "recipient_policy"

const modeMonitor = "monitor"

// RecipientPolicy is a [[recipient_policy]] table: what counts for some recipients. The
// first one that matches a recipient counts.
type RecipientPolicy struct {
	// Name appears in the log and in commands. Without the key it is
	// "recipient_policy-1" in the first table. No two are alike.
	Name string `toml:"name"`

	// Match holds the keys of entries (package listfile) in normal form, of exceptions
	// with a "!" before; or its only element is "file:" with the absolute path of a file
	// that has entries. Never empty.
	Match Addresses `toml:"match"`

	// With Exempt the fields below are empty.
	Exempt bool `toml:"exempt"` // they get mail from every sender

	Lists     []string `toml:"lists"`                        // names of the lists that count; empty: all
	MaxAction string   `toml:"max_action"`                   // milder than "reject"; empty: any
	Mode      string   `toml:"mode" oneof:"enforce,monitor"` // "monitor": lists only log, and MaxAction is empty
}

// DefaultRecipientPolicy returns the values of an empty [[recipient_policy]] table, but for
// the name, which Load sets.
func DefaultRecipientPolicy() RecipientPolicy { return RecipientPolicy{Mode: "enforce"} }

// File returns the path of the file with the entries, if they are in one.
func (p *RecipientPolicy) File() (path string, ok bool) { return onlyFile(p.Match) }

// RecipientPolicyKey returns the path of a key of RecipientPolicies[i], for [Config.Fault].
func RecipientPolicyKey(i int, key string) string {
	return element(TableRecipientPolicy, i) + "." + key
}

// recipientPolicies checks the [[recipient_policy]] tables, after the lists.
func (d *document) recipientPolicies() {
	var earlier []earlierMatch
	names := map[string]int{}
	for i := range d.cfg.RecipientPolicies {
		p, path := &d.cfg.RecipientPolicies[i], element(TableRecipientPolicy, i)
		line, _ := d.pos.find(path)
		if p.Name == "" {
			p.Name = fmt.Sprintf("%s-%d", TableRecipientPolicy, i+1)
		}
		d.recipientPolicyName(path+".name", p)
		if first, ok := names[p.Name]; ok {
			d.fail(path+".name", fmt.Sprintf("%q is also the name of the policy at line %d", p.Name, first), "give each policy its own name")
		} else {
			names[p.Name] = line
		}
		d.recipientMatch(path+".match", p)
		d.say(path, p)
		if !d.failedBelow(path + ".match") {
			d.unreached(path+".match", p.Match, earlier)
			d.exempted(path+".match", p.Match)
			d.foreign(path+".match", p.Match)
			earlier = append(earlier, earlierMatch{fmt.Sprintf("the policy at line %d", line), p.Match})
		}
		d.policyLists(path+".lists", p.Lists)
	}
	d.unasked()
}

// recipientPolicyName checks the name of a policy. That of one with a file is a name for
// commands and for the state directory, as a list's.
func (d *document) recipientPolicyName(path string, p *RecipientPolicy) {
	_, inFile := p.File()
	taken := func(l List) bool { return l.Name == p.Name }
	switch {
	case !listName.MatchString(p.Name) || p.Name == "." || p.Name == "..":
		d.fail(path, fmt.Sprintf("%q is not a valid name", p.Name), `use letters, digits, ".", "_" and "-"`)
	case len(p.Name) > maxListName:
		d.fail(path, fmt.Sprintf("has %d bytes, more than %d", len(p.Name), maxListName), "write a shorter name")
	case inFile && (slices.ContainsFunc(d.cfg.Lists, taken) || p.Name == "recipient_domains" || p.Name == "valid_recipients"):
		d.fail(path, fmt.Sprintf("%q is also the name of a list, or of another file with recipients, and commands could mean either", p.Name),
			"write another name")
	}
}

const matchHint = `write entries, such as ["@sales.example.net", "ceo@example.net"], or "file:/etc/spamgate/sales"`

// recipientMatch normalises the entries of a policy, or checks that a file is the only one.
func (d *document) recipientMatch(path string, p *RecipientPolicy) {
	if len(p.Match) == 0 {
		d.fail(path, "is missing: it says for which recipients the policy is", matchHint)
	}
	normal := 0
	for i, s := range p.Match {
		key := d.elementOrKey(path, i)
		if d.isFile(key, s, len(p.Match), "match") {
			normal++
			continue
		}
		entry, err := RecipientEntry(s)
		if err != nil {
			what, hint, _ := strings.Cut(err.Error(), "; ")
			d.fail(key, fmt.Sprintf("%q: %s", s, what), hint)
			continue
		}
		if slices.Contains(p.Match[:i], entry) {
			d.twice(key, s)
		}
		if !strings.HasPrefix(entry, "!") {
			normal++
		}
		p.Match[i] = entry
	}
	if normal == 0 && len(p.Match) > 0 && !d.failedBelow(path) {
		d.fail(path, `has only exceptions ("!"), so that it matches nobody`, `add what they are exceptions to, such as "@example.net"`)
	}
}

// RecipientEntry returns the key of an entry that matches recipients, with a "!" before
// that of an exception. The error is what is wrong, "; ", and what to do.
func RecipientEntry(s string) (string, error) {
	e, err := listfile.ParseEntry(s, listfile.Options{})
	p := listfile.Problem{What: "that is a sender, and not a recipient"}
	switch {
	case errors.As(err, &p):
	case e.Kind == sender.KindNull:
	case e.Exception:
		return "!" + e.Key, nil
	default:
		return e.Key, nil
	}
	hint, _, _ := strings.Cut(p.Hint, ", or set allow_public_suffix") // a key of lists
	if hint == "" {
		hint = `write "user@example.net", "@example.net" for every address at that domain, "example.net" for its subdomains too, or "user@" for that name at any domain`
	}
	return "", fmt.Errorf("%s; %s", strings.Replace(p.What, "not a sender", "not a recipient", 1), hint)
}

// say checks what a policy says, and that it says something.
func (d *document) say(path string, p *RecipientPolicy) {
	if d.pos.has(path+".lists") && len(p.Lists) == 0 && !d.failedBelow(path+".lists") {
		d.fail(path+".lists", "is empty, so that no list counts", "write exempt = true for that, or the names of lists, or remove the line for all")
	}
	d.listNames(p.Lists, path+".lists", "or remove the line for all lists")
	d.maxAction(path, p)
	if p.Mode != modeMonitor && d.pos.has(path+".mode") && d.cfg.Policy.Mode == modeMonitor {
		d.warn(path+".mode", `has no effect with mode = "monitor" in [policy], which is for all recipients`, "remove one of the two")
	}
	silent := true
	for key, set := range map[string]bool{"lists": len(p.Lists) > 0, "max_action": p.MaxAction != "", "mode": p.Mode == modeMonitor} {
		silent = silent && !set && !d.failedBelow(path+"."+key)
		if set && p.Exempt {
			d.fail(path+"."+key, "contradicts exempt = true, with which no list counts for these recipients", "remove one of the two")
		}
	}
	if silent && !p.Exempt && !d.failed[path+".exempt"] {
		d.fail(path, "says nothing about its recipients",
			`add exempt = true, lists = [...], max_action = "tag" or mode = "monitor"; to leave recipients out of a later policy, write "!ann@example.net" in its match`)
	}
}

// maxAction checks the strictest action of a policy.
func (d *document) maxAction(path string, p *RecipientPolicy) {
	key := path + ".max_action"
	switch p.MaxAction {
	case "":
	case "reject":
		d.fail(key, `"reject" is the strictest action, and limits nothing`, `write "defer" or "tag", or remove the line`)
	case modeMonitor:
		d.fail(key, `"monitor" is not an action here`, `write mode = "monitor" instead`)
	default:
		d.action(key, p.MaxAction, blockActions[1:len(blockActions)-1])
	}
	if p.MaxAction != "" && p.Mode == modeMonitor {
		d.fail(key, `has no effect with mode = "monitor", which takes no action`, "remove one of the two")
	}
}

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
	for _, door := range d.cfg.Doors {
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
		pos := strings.LastIndexByte(entry, '@')
		domain := strings.TrimPrefix(entry[pos+1:], "*.")
		if domain == "" || strings.HasPrefix(entry, schemeFile) || strings.HasPrefix(entry, "!") {
			continue
		}
		ours := slices.ContainsFunc(domains, func(own string) bool {
			tree := strings.HasPrefix(own, ".")
			own = strings.TrimPrefix(own, ".")
			return domain == own || tree && strings.HasSuffix(domain, "."+own) || pos < 0 && strings.HasSuffix(own, "."+domain)
		})
		if !ours {
			d.warn(d.elementOrKey(path, i), fmt.Sprintf("%q names nobody of recipient_domains in [policy]", entry), "correct it, or add its domain there")
		}
	}
}

// unasked warns about policies that nobody asks.
func (d *document) unasked() {
	if len(d.cfg.RecipientPolicies) > 0 && d.cfg.OnlyDNS() {
		d.warn(element(TableRecipientPolicy, 0), "has no effect: a question over DNS names no recipient", "remove it, or add a [[listener]], a [[milter]] or a [[policy_service]]")
	}
}
