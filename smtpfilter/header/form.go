package header

import (
	"slices"
	"strings"
)

// Form is what a field holds in the place of an address, and mail servers make
// addresses of: it has no "@", or nothing on one side of it.
type Form struct {
	// Field is the name as it was asked for.
	Field string

	// Text is the form without quotes, comments and invisible characters:
	// "spam%listed.example", "spammer", "@listed.example". An "@" at the end is
	// left out.
	Text string

	// Beside says that the form stands beside an address of the same field and is most
	// likely a part of a name, as "Smith" in "Smith, Ann <ann@b.example>". That is a
	// word, a route to a host without a dot or with space at its operator ("Yahoo! Mail"),
	// an "@" with space on both sides before a domain without a dot ("Sales @ Acme"), and
	// a word in angle brackets if an address in brackets is there, too.
	Beside bool

	domain  bool // Text is "@" and a domain; else an "@" is part of a local part
	address bool // Text is an address
}

// Readings returns the addresses that servers make of the form, each once:
//
//   - user%host and host!user are user@host, at the last "%" and the first "!"
//     as in Postfix's trivial-rewrite(8), and at the first "%" and last "!";
//   - "@host" is the empty local part at that domain: `""@host`;
//   - whatever has no domain is a local part as well: "user@". The server adds a
//     domain of its own.
//
// Of an "@" before what no domain can begin with there is nothing.
func (f Form) Readings() []string {
	if f.address {
		return []string{f.Text}
	}
	if f.domain {
		return appendReadings(nil, nil, []byte(f.Text[1:]))
	}
	return append(appendRoutes(nil, f.Text), join(cutName([]byte(f.Text)), ""))
}

// appendRoutes appends what servers make of "%" and "!" in a local part without
// quotes.
func appendRoutes(found []string, local string) []string {
	add := func(user, host string) {
		before := len(found)
		if cleanHost(host) == "" {
			if user != "" {
				found = append(found, join([]byte(user), ""))
			}
		} else {
			found = appendReadings(found, []byte(user), []byte(host))
			if isIP(host) {
				found = append(found, join([]byte(user), "["+host+"]"))
			}
		}
		for i := len(found) - 1; i >= before; i-- {
			if slices.Contains(found[:i], found[i]) {
				found = slices.Delete(found, i, i+1)
			}
		}
	}
	for _, r := range routes(local) {
		add(r.user, r.host)
	}
	return found
}

// route is a way to read a local part with "%" or "!".
type route struct{ user, host string }

// routes returns what servers take for user and host in a local part without quotes.
func routes(local string) []route {
	var all []route
	if i := strings.IndexByte(local, '!'); i >= 0 {
		all = append(all, route{local[i+1:], local[:i]})
		if j := strings.LastIndexByte(local, '!'); j > i {
			host := local[:j]
			all = append(all, route{local[j+1:], host[strings.LastIndexByte(host, '!')+1:]})
		}
	}
	if i := strings.LastIndexByte(local, '%'); i >= 0 {
		all = append(all, route{local[:i], local[i+1:]})
		if j := strings.IndexByte(local, '%'); j < i {
			host, _, _ := strings.Cut(local[j+1:], "%")
			all = append(all, route{local[:j], host})
		}
	}
	return all
}

// Routes returns the addresses that a server makes of user%host@local and
// host!user@local when it takes "local" for itself: those of the local part
// alone. Most addresses have none.
func Routes(address string) []string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !strings.ContainsAny(address[:at], routeMarks) {
		return nil
	}
	return appendRoutes(nil, unquoteLocal(address[:at]))
}

// unquoteLocal undoes what join does to a local part.
func unquoteLocal(local string) string {
	if len(local) < 2 || local[0] != '"' {
		return local
	}
	var b strings.Builder
	for i := 1; i < len(local)-1; i++ {
		if local[i] == '\\' {
			i++
		}
		b.WriteByte(local[i])
	}
	return b.String()
}

// form is a Form in the making.
type form struct {
	text  string
	kind  formKind
	route bool // to a host with a dot, and no part of a name
}

// formKind says where a form stands.
type formKind uint8

const (
	atSign     formKind = iota // beside an "@" without a domain, or all that is in brackets as one
	domainOnly                 // behind an "@" without a local part
	bracketed                  // a word in angle brackets
	bareWord                   // another word
	spacedAt                   // an address whose "@" has space on both sides, and whose domain has no dot
)

// beside reports whether a form is most likely a part of a name in a value that holds
// an address (named), or one in angle brackets (angled).
func (f form) beside(named, angled bool) bool {
	switch f.kind {
	case spacedAt:
		return named
	case bareWord:
		return named && !f.route
	case bracketed:
		return angled && !f.route
	}
	return false
}

// noteForms takes the words of the chain that no "@" uses, and the "@" with
// nothing on one side. It is called before an "@" (more) or the end of the chain
// is taken. Closed says that the chain fills angle brackets to their end.
func (s *scanner) noteForms(more, closed bool) {
	c := &s.addrs
	if s.mode != byGrammar || more && c.wantsDomain() {
		return
	}
	from, to := 0, len(c.cur.words)
	switch {
	case c.open && c.cur.empty() && !c.prev.empty():
		_, local := c.prev.tail()
		s.addForm(local, atSign, false)
	case c.open && !c.cur.empty():
		from = c.cur.headLen()
		_, domain := c.cur.head()
		switch {
		case c.prev.empty():
			s.addForm(append([]byte{'@'}, domain...), domainOnly, false)
		case cleanHost(string(domain)) == "":
			_, local := c.prev.tail()
			s.addForm(local, atSign, false)
		}
	}
	if more && to > 0 {
		to = max(from, c.cur.tailStart())
	}
	kind := bareWord
	if s.inside && !c.open && (to == from || c.cur.isOneForm()) {
		kind = bracketed
	}
	s.addWords(&c.cur, from, to, kind)
	if closed && !c.open && len(c.cur.words) > 1 {
		spaced := c.cur.routeSpaced(0, len(c.cur.words))
		s.addForm(c.cur.buf, bracketed, spaced) // some readers drop the space in brackets
		s.addForm(c.cur.spaced(), bracketed, spaced)
	}
}

// addWords adds some words of a segment: what may be one word, and its parts
// where a mark alone joins them.
func (s *scanner) addWords(g *segment, from, to int, kind formKind) {
	for from < to {
		end := from + 1
		for end < to && g.joinsForm(end) {
			end++
		}
		// Space at an operator makes it a mark of a name, unless there is nothing else.
		alone := from == 0 && end == len(g.words)
		s.addForm(g.text(from, end), kind, !alone && g.routeSpaced(from, end))
		for part := from; part < end; {
			next := part + 1
			for next < end && (g.words[next].before != byMark || g.besideRoute(next)) {
				next++
			}
			if next-part < end-from {
				s.addForm(g.text(part, next), kind, g.routeSpaced(part, next))
			}
			part = next
		}
		from = end
	}
}

// addForm adds a form, decoded if it is encoded. Spaced says that there was space at
// an operator in it, as in a name.
func (s *scanner) addForm(text []byte, kind formKind, spaced bool) {
	s.budget.spend(1)
	s.budget.spendPart(text)
	t := string(text)
	if strings.Contains(t, "=?") {
		t = strings.TrimSpace(s.budget.decodeWords(t))
	}
	t = string(visible([]byte(t)))
	if kind != domainOnly {
		t = string(cutLocal([]byte(t)))
	}
	if kind == bareWord && strings.Contains(t, "@") {
		return // it is read as an address elsewhere
	}
	if strings.ContainsFunc(t, isWordRune) {
		s.forms = append(s.forms, form{text: t, kind: kind, route: !spaced && isFullRoute(t)})
	}
}

// isFullRoute reports whether a text has a route to a host with a dot, and no space at
// its operators.
func isFullRoute(text string) bool {
	for i := range len(text) {
		if isRoute(text[i]) && (i > 0 && text[i-1] == ' ' || i+1 < len(text) && text[i+1] == ' ') {
			return false
		}
	}
	for _, r := range routes(text) {
		if host := cleanHost(r.host); strings.ContainsAny(host, ".:") {
			return true
		}
	}
	return false
}

// dropForms forgets the forms from one index to before another, except addresses.
func (s *scanner) dropForms(from, to int) {
	kept := s.forms[:from]
	for _, f := range s.forms[from:to] {
		if f.kind == spacedAt {
			kept = append(kept, f)
		}
	}
	s.forms = append(kept, s.forms[to:]...)
}

// plainForms marks the forms from an index on as what may be a name.
func (s *scanner) plainForms(from int) {
	for i := from; i < len(s.forms); i++ {
		if f := &s.forms[i]; f.kind == atSign || f.kind == bracketed {
			f.kind = bareWord
		}
	}
}

// isWordRune reports letters and digits; a row of punctuation names nobody.
func isWordRune(r rune) bool {
	return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r > 0x7f
}
