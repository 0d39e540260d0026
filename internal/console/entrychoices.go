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

// choices sets what can be chosen, and what is chosen if nothing was.
func (f *entryForm) choices(x *exchange) {
	address, domain := f.address(), f.domain()
	switch {
	case f.Sender == "<>":
		f.Whats = []option{{whatNull, "bounces: mail without a sender"}}
	case f.Sender == "":
		f.Whats = []option{{whatAddress, "this address only"}, {whatDomain, "everyone at its domain"}, {whatBelow, "its domain with all subdomains"}}
	default:
		if address != "" {
			f.Whats = append(f.Whats, option{whatAddress, "only " + address})
		}
		if domain != "" {
			f.Whats = append(f.Whats, option{whatDomain, "everyone at " + domain})
		}
		if domain != "" && !strings.HasPrefix(domain, "[") {
			f.Whats = append(f.Whats, option{whatBelow, domain + " with all its subdomains"})
		}
	}
	f.What = chosen(f.Whats, f.What)

	recipient, whose := f.recipient()
	if x.who.Domains == nil {
		f.Whoms = append(f.Whoms, option{forAll, "everybody"})
	}
	mine, all := "one recipient", "all recipients at a domain"
	if recipient != "" {
		mine = "only " + recipient
	}
	if whose != "" {
		all = "everybody at " + whose
	}
	f.Whoms = append(f.Whoms, option{forRecipient, mine}, option{forDomain, all})
	if _, ok := x.console.Editor.Default(f.Type, true); ok && f.Whom == "" && recipient != "" {
		f.Whom = forRecipient
	}
	f.Whom = chosen(f.Whoms, f.Whom)

	now := x.console.Now()
	until := func(d time.Duration) string { return " (until " + untilTime(now.Add(d), now) + ")" }
	f.Untils = []option{{"1h", "an hour" + until(time.Hour)}, {"1d", "a day" + until(24*time.Hour)}}
	if _, limited := x.who.Longest(); !limited {
		f.Untils = append(f.Untils, option{"30d", "a month" + until(30*24*time.Hour)}, option{"never", "for good"}, option{"date", "until the end of a day"})
	}
	if f.Until == "" {
		f.Until = map[bool]string{true: "1d", false: "never"}[f.Allow]
	}
	f.Until = chosen(f.Untils, f.Until)
	f.lists(x)
}

// chosen returns a value that can be chosen, or else the first one; "" if there is none.
func chosen(all []option, value string) string {
	if len(all) == 0 {
		return ""
	}
	return all[max(0, slices.IndexFunc(all, func(o option) bool { return o.Value == value }))].Value
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
