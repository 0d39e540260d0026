package nexthop

import "strings"

// servers returns the mail servers of a target.
func servers(t Target) []*SMTP {
	switch t := t.(type) {
	case *SMTP:
		return []*SMTP{t}
	case *Group:
		var all []*SMTP
		for _, m := range t.members {
			all = append(all, servers(m.Target)...)
		}
		return all
	}
	return nil
}

// Greetings returns the last greetings of a target's servers: the text after "220 ".
// It begins with the server's name (RFC 5321, section 4.3.1), and most servers add
// their software's. A server that has not greeted yet has none.
func Greetings(t Target) []string {
	var all []string
	for _, s := range servers(t) {
		if text := s.known.greeting.Load(); text != nil {
			all = append(all, *text)
		}
	}
	return all
}

// GreetingName returns the server's name at the beginning of a greeting's text, in
// lower case and without a trailing dot. It returns "" if that is not a domain name
// with a dot.
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
