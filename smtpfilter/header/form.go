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

	// Beside says that the form is a word beside an address of the same field, as
	// "Smith" in "Smith, Ann <ann@b.example>": most likely a part of a name.
	Beside bool

	domain bool // Text is "@" and a domain; else an "@" is part of a local part
}

// Readings returns the addresses that servers make of the form, each once:
//
//   - user%host and host!user are user@host, at the last "%" and the first "!"
//     as in Postfix's trivial-rewrite(8), and at the first "%" and last "!";
//   - "@host" is the empty local part at that domain: `""@host`;
//   - whatever has no domain is a local part as well: "user@". The server adds a
//     domain of its own.
//
// Of a word beside an address there is the local part alone, of an "@" before what
// no domain can begin with there is nothing.
func (f Form) Readings() []string {
	if f.domain {
		return appendReadings(nil, nil, []byte(f.Text[1:]))
	}
	var found []string
	if !f.Beside {
		found = appendRoutes(found, f.Text)
	}
	return append(found, join(cutName([]byte(f.Text)), ""))
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
	if i := strings.IndexByte(local, '!'); i >= 0 {
		add(local[i+1:], local[:i])
		if j := strings.LastIndexByte(local, '!'); j > i {
			host := local[:j]
			add(local[j+1:], host[strings.LastIndexByte(host, '!')+1:])
		}
	}
	if i := strings.LastIndexByte(local, '%'); i >= 0 {
		add(local[:i], local[i+1:])
		if j := strings.IndexByte(local, '%'); j < i {
			host, _, _ := strings.Cut(local[j+1:], "%")
			add(local[:j], host)
		}
	}
	return found
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
	text   string
	domain bool
	plain  bool // a word outside of angle brackets, without "%" and "!"
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
		s.addForm(local, false, false)
	case c.open && !c.cur.empty():
		from = c.cur.headLen()
		_, domain := c.cur.head()
		switch {
		case c.prev.empty():
			s.addForm(append([]byte{'@'}, domain...), true, false)
		case cleanHost(string(domain)) == "":
			_, local := c.prev.tail()
			s.addForm(local, false, false)
		}
	}
	if more && to > 0 {
		to = max(from, c.cur.tailStart())
	}
	inBrackets := s.inside && !c.open && (to == from || c.cur.isOneForm())
	s.addWords(&c.cur, from, to, !inBrackets)
	if closed && !c.open && len(c.cur.words) > 1 {
		s.addForm(c.cur.buf, false, false) // some readers drop the space in brackets
		s.addForm(c.cur.spaced(), false, false)
	}
}

// addWords adds some words of a segment: what may be one word, and its parts
// where a mark alone joins them.
func (s *scanner) addWords(g *segment, from, to int, plain bool) {
	for from < to {
		end := from + 1
		for end < to && g.joinsForm(end) {
			end++
		}
		s.addForm(g.text(from, end), false, plain)
		for part := from; part < end; {
			next := part + 1
			for next < end && (g.words[next].before != byMark || g.besideRoute(next)) {
				next++
			}
			if next-part < end-from {
				s.addForm(g.text(part, next), false, plain)
			}
			part = next
		}
		from = end
	}
}

// addForm adds a form, decoded if it is encoded. Plain says that it may be a part
// of a name; one with a route in it is none.
func (s *scanner) addForm(text []byte, domain, plain bool) {
	s.budget.spend(1)
	s.budget.spendPart(text)
	t := string(text)
	if strings.Contains(t, "=?") {
		t = strings.TrimSpace(s.budget.decodeWords(t))
	}
	t = string(visible([]byte(t)))
	if !domain {
		t = string(cutLocal([]byte(t)))
	}
	if plain && strings.Contains(t, "@") {
		return // it is read as an address elsewhere
	}
	if strings.ContainsFunc(t, isWordRune) {
		s.forms = append(s.forms, form{t, domain, plain && !strings.ContainsAny(t, routeMarks)})
	}
}

// plainForms marks the forms from an index on as what may be a name.
func (s *scanner) plainForms(from int) {
	for i := from; i < len(s.forms); i++ {
		f := &s.forms[i]
		f.plain = f.plain || !f.domain && !strings.ContainsAny(f.text, routeMarks)
	}
}

// isWordRune reports letters and digits; a row of punctuation names nobody.
func isWordRune(r rune) bool {
	return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || r > 0x7f
}
