package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"spamgate/internal/config"
)

// The choices of the form for a new entry.
const (
	whatAddress = "address"
	whatDomain  = "domain"  // everyone at exactly the domain
	whatBelow   = "below"   // and at its subdomains
	whatNull    = "bounces" // the null sender

	forAll       = "all"
	forRecipient = "recipient"
	forDomain    = "domain" // the recipient's
)

// choice is a choice of a form.
type choice struct {
	Value, Text string
	Checked     bool
}

// choices sets what can be chosen, and what is chosen if nothing was.
func (f *entryForm) choices(x *exchange) {
	address, domain := f.address(), f.domain()
	switch {
	case f.Sender == "<>":
		f.Whats = []choice{{whatNull, "bounces: mail without a sender", true}}
	case f.Sender == "":
		f.Whats = []choice{{whatAddress, "this address only", false}, {whatDomain, "everyone at its domain", false}, {whatBelow, "its domain with all subdomains", false}}
	default:
		if address != "" {
			f.Whats = append(f.Whats, choice{whatAddress, "only " + address, false})
		}
		if domain != "" {
			f.Whats = append(f.Whats, choice{whatDomain, "everyone at " + domain, false})
		}
		if domain != "" && !strings.HasPrefix(domain, "[") {
			f.Whats = append(f.Whats, choice{whatBelow, domain + " with all its subdomains", false})
		}
	}
	f.What = chosen(f.Whats, f.What)

	recipient, whose := f.recipient()
	if x.who.Domains == nil {
		f.Whoms = append(f.Whoms, choice{forAll, "everybody", false})
	}
	one, all := "one recipient", "all recipients at a domain"
	if recipient != "" {
		one = "only " + recipient
	}
	if whose != "" {
		all = "everybody at " + whose
	}
	f.Whoms = append(f.Whoms, choice{forRecipient, one, false}, choice{forDomain, all, false})
	if _, ok := x.console.Editor.Default(f.Type, true); ok && f.Whom == "" && recipient != "" {
		f.Whom = forRecipient
	}
	f.Whom = chosen(f.Whoms, f.Whom)

	now := x.console.Now()
	until := func(d time.Duration) string { return " (until " + untilTime(now.Add(d), now) + ")" }
	f.Untils = []choice{{"1h", "an hour" + until(time.Hour), false}, {"1d", "a day" + until(24*time.Hour), false}}
	if _, limited := x.who.Longest(); !limited {
		f.Untils = append(f.Untils, choice{"30d", "a month" + until(30*24*time.Hour), false}, choice{"never", "for good", false}, choice{"date", "until the end of a day", false})
	}
	if f.Until == "" {
		f.Until = map[bool]string{true: "1d", false: "never"}[f.Allow]
	}
	f.Until = chosen(f.Untils, f.Until)
	f.lists(x)
}

// chosen marks the choice with a value, or else the first one, and returns its value.
func chosen(all []choice, value string) string {
	i := max(0, slices.IndexFunc(all, func(c choice) bool { return c.Value == value }))
	if len(all) == 0 {
		return ""
	}
	all[i].Checked = true
	return all[i].Value
}

// lists sets the lists that the entry can go to: managed ones of its type, the default first.
func (f *entryForm) lists(x *exchange) {
	by := f.Whom != forAll
	for _, l := range x.console.Editor.Lists() {
		if l.Type == f.Type && l.PerRecipient == by {
			f.Lists = append(f.Lists, l)
		}
	}
	slices.SortStableFunc(f.Lists, func(a, b config.List) int { return cmp.Compare(rank(a), rank(b)) })
	if len(f.Lists) == 0 {
		f.Missing = missingList(x.console.Config().Lists, f.Type, by)
		f.List = ""
	} else if !slices.ContainsFunc(f.Lists, func(l config.List) bool { return l.Name == f.List }) {
		f.List = f.Lists[0].Name
	}
}

func rank(l config.List) int {
	if l.Default {
		return 0
	}
	return 1
}

// missingList returns the lines of a configuration that add a managed list to others.
func missingList(others []config.List, kind string, perRecipient bool) string {
	name := map[string]string{"allow": "allowed", "block": "blocked"}[kind]
	lines := "[[list]]\n"
	if perRecipient {
		name += "-for"
	}
	for slices.ContainsFunc(others, func(l config.List) bool { return l.Name == name }) {
		name += "-managed"
	}
	lines += `name = "` + name + "\"\nmanaged = true\n"
	if kind == "allow" {
		lines += "type = \"allow\"\n"
	}
	if perRecipient {
		lines += "per_recipient = true\n"
	}
	return lines + "default = true\n"
}
