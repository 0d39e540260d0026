package header

import (
	"bytes"
	"slices"
	"strings"
)

// Form is what a field has instead of an address, and what mail servers turn into
// addresses: it has no "@", or nothing on one side of it. Or it is an address that only some
// readers see.
type Form struct {
	// Field is the field's name, as the caller wrote it.
	Field string

	// Text is the form without quotes, comments, invisible characters and a final
	// "@": "spam%listed.example", "spammer", "@listed.example".
	Text string

	// Beside says that the form is beside an address in the same field and is most
	// likely part of a name, like "Smith" in "Smith, Ann <ann@b.example>". Such forms
	// are: a word; a route to a host without a dot or with space at its operator
	// ("Yahoo! Mail"); an "@" with space on both sides and a domain without a dot
	// ("Sales @ Acme"); and a word in angle brackets if the field also has an address
	// in angle brackets.
	Beside bool

	domain  bool // Text is "@" and a domain; otherwise an "@" is part of a local part, or address is set
	address bool // Text is an address
}

// Readings returns the addresses that servers make of the form, each once:
//
//   - user%host and host!user become user@host, split at the last "%" and the first
//     "!" as in Postfix's trivial-rewrite(8), and also at the first "%" and last "!";
//   - "@host" becomes the empty local part at that domain: `""@host`;
//   - a form without a domain is also a local part, "user@": the server adds its own
//     domain.
//
// It is empty for an "@" before characters that cannot begin a domain.
func (f Form) Readings() []string {
	if f.address {
		return []string{f.Text}
	}
	if f.domain {
		return appendReadings(nil, nil, []byte(f.Text[1:]))
	}
	return append(appendRoutes(nil, f.Text), join(cutName([]byte(f.Text)), ""))
}

// appendRoutes appends the addresses that servers make of "%" and "!" in a local part
// without quotes, each once.
func appendRoutes(found []string, local string) []string {
	for _, r := range routes(local) {
		before := len(found)
		user := []byte(r.user)
		switch {
		case cleanHost(r.host) != "":
			found = appendReadings(found, user, []byte(r.host))
			if isIP(r.host) {
				found = append(found, join(user, "["+r.host+"]"))
			}
		case r.user != "":
			found = append(found, join(user, ""))
		}
		for i := len(found) - 1; i >= before; i-- {
			if slices.Contains(found[:i], found[i]) {
				found = slices.Delete(found, i, i+1)
			}
		}
	}
	return found
}

// route is one reading of a local part with "%" or "!".
type route struct{ user, host string }

// routes returns the readings of a local part without quotes.
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

// Routes returns the addresses that a server makes of user%host@local and host!user@local
// if "local" is its own name. Most addresses have none.
func Routes(address string) []string {
	pos := strings.LastIndexByte(address, '@')
	if pos < 0 || !strings.ContainsAny(address[:pos], routeMarks) {
		return nil
	}
	return appendRoutes(nil, unquoteLocal(address[:pos]))
}

// unquoteLocal removes the quotes that join adds to a local part.
func unquoteLocal(local string) string {
	if len(local) < 2 || local[0] != '"' {
		return local
	}
	return unquoter.Replace(local[1 : len(local)-1])
}

var unquoter = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

// form is a Form before it is known whether the value has an address.
type form struct {
	text  string
	kind  formKind
	route bool // to a host with a dot, so not part of a name
}

// formKind says where a form was found.
type formKind uint8

const (
	atSign     formKind = iota // before an "@" without a domain
	domainOnly                 // after an "@" without a local part
	bracketed                  // a word in angle brackets
	bareWord                   // another word
	spacedAt                   // an address with space on both sides of its "@" and no dot in its domain
	guessed                    // an address that a reader may see: in a phrase, after a route, in another reading
)

// beside reports whether a form is most likely part of a name, in a value that has an
// address (named), or one in angle brackets (angled).
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

// chainForms adds the words of the chain that no "@" uses, and an "@" with nothing on one
// side. The scanner calls it before it reads an "@" (more) or the end of the chain. Closed
// says that the chain fills angle brackets.
func (s *scanner) chainForms(more, closed bool) {
	c := &s.addrs
	if more && c.wantsDomain() {
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
			if len(domain) < len(c.cur.buf) { // some readers drop the space, Sendmail writes a dot for it
				s.addForm(append([]byte{'@'}, c.cur.buf...), domainOnly, false)
				s.addForm(append([]byte{'@'}, c.cur.dotted()...), domainOnly, false)
			}
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
	if !c.open && len(c.cur.words) > 1 && bytes.ContainsAny(c.cur.buf, routeMarks) {
		s.addForm(c.cur.dotted(), kind, c.cur.routeSpaced(0, len(c.cur.words)))
	}
	if closed && !c.open && len(c.cur.words) > 1 {
		spaced := c.cur.routeSpaced(0, len(c.cur.words))
		s.addForm(c.cur.buf, bracketed, spaced) // some readers drop the space inside brackets
		s.addForm(c.cur.spaced(), bracketed, spaced)
	}
}

// addWords adds some words of a segment: words that may be one, and their parts if only a
// mark joins them.
func (s *scanner) addWords(g *segment, from, to int, kind formKind) {
	for from < to {
		end := from + 1
		for end < to && g.joinsForm(end) {
			end++
		}
		// Space at an operator means a name, unless there is nothing else.
		alone := from == 0 && end == len(g.words)
		s.addForm(g.text(from, end), kind, !alone && g.routeSpaced(from, end))
		for part := from; part < end; {
			next := part + 1
			for next < end && (g.words[next].before != markGap || g.besideRoute(next)) {
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

// addForm adds a form, decoded if it is encoded. Spaced says that an operator in it had
// space beside it, as in a name.
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
		return // the decoded text is read as an address elsewhere
	}
	f := form{text: t, kind: kind, route: !spaced && isFullRoute(t)}
	if !strings.ContainsFunc(t, isWordRune) || s.mode != byGrammar && !f.route && kind != domainOnly {
		return
	}
	s.forms = append(s.forms, f)
	if kind != domainOnly {
		s.addRouted(t)
	}
}

// maxRoute bounds the domains of a source route. More are too complex to judge: real mail has
// none at all (RFC 5321, appendix C).
const maxRoute = 32

// addRoute adds a domain to the present source route.
func (s *scanner) addRoute(domain string) {
	if domain == "" {
		return
	}
	if len(s.route) == maxRoute {
		s.budget.exhaust()
		return
	}
	if len(s.route) == 0 {
		s.routed = len(s.found)
	}
	s.route = append(s.route, domain)
}

// addRouted adds a word after a source route as a local part at each domain of the route. Some
// readers take the route's domain for that of the address.
func (s *scanner) addRouted(word string) {
	for _, domain := range s.route {
		if s.budget.spend(1 + len(word)/oddPerWord); s.budget.spent() {
			return
		}
		for _, address := range appendReadings(nil, []byte(word), []byte(domain)) {
			s.forms = append(s.forms, form{text: address, kind: guessed})
		}
	}
}

// isFullRoute reports whether a text has a route to a host with a dot, and no space beside
// its operators.
func isFullRoute(text string) bool {
	for i := range len(text) {
		if isRoute(text[i]) && (i > 0 && text[i-1] == ' ' || i+1 < len(text) && text[i+1] == ' ') {
			return false
		}
	}
	return slices.ContainsFunc(routes(text), func(r route) bool {
		return strings.ContainsAny(cleanHost(r.host), ".:")
	})
}

// dropForms removes the forms with indexes from <= i < to, except addresses and domains alone.
func (s *scanner) dropForms(from, to int) {
	kept := slices.DeleteFunc(s.forms[from:to:to], func(f form) bool { return f.kind != spacedAt && f.kind != guessed && f.kind != domainOnly })
	s.forms = append(s.forms[:from+len(kept)], s.forms[to:]...)
}

// nameForms marks the forms from an index on as words that may be part of a name.
func (s *scanner) nameForms(from int) {
	for i := from; i < len(s.forms); i++ {
		if f := &s.forms[i]; f.kind == atSign || f.kind == bracketed {
			f.kind = bareWord
		}
	}
}

// isWordRune reports whether r is a letter or digit, or not ASCII. Punctuation alone is not
// a name.
func isWordRune(r rune) bool {
	return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r > 0x7f
}
