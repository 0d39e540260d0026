package nexthop

import (
	"strings"

	"spamgate/smtpfilter/wire"
)

// Greetings returns the texts with which the servers of a target have greeted last:
// what follows "220 ". It begins with the server's name (RFC 5321, section
// 4.3.1), and most servers add their software's. Servers that have not been heard
// yet, and Maildirs, have none.
func Greetings(t Target) []string {
	switch t := t.(type) {
	case *SMTP:
		if text := t.known.greeting.Load(); text != nil {
			return []string{*text}
		}
	case *Group:
		var all []string
		for _, m := range t.members {
			all = append(all, Greetings(m.Target)...)
		}
		return all
	}
	return nil
}

// GreetingName returns the server's name at the beginning of a greeting's text, in
// lower case and without a trailing dot. It is "" if that is not a domain name with
// a dot.
func GreetingName(text string) string {
	name, _, _ := strings.Cut(text, " ")
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	}
	if !strings.Contains(name, ".") || strings.ContainsFunc(name, odd) {
		return ""
	}
	return name
}

// greeted remembers a greeting. It is called with each connection, and rarely
// hears anything new.
func (k *known) greeted(r wire.Reply) {
	if r.Code != 220 || len(r.Lines) == 0 {
		return
	}
	if before := k.greeting.Load(); before == nil || *before != r.Lines[0] {
		text := r.Lines[0]
		k.greeting.Store(&text)
	}
}
