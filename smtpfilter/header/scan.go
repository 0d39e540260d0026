package header

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mode says which marks a scanner respects.
type mode uint8

const (
	byGrammar mode = iota // quoted strings, quoted pairs, comments
	asText                // comments only: for the text of quoted strings and encoded-words
	asRaw                 // none: the last resort
)

// scanner walks once over an address list and collects every address in it.
//
// The list is a row of members. A member's addresses are held back until its
// end, for an address in angle brackets makes display text of what stands in
// front of it.
type scanner struct {
	text  string
	pos   int
	mode  mode
	found []string // of the present member, once out is set
	forms []form   // likewise

	// out takes what a member holds; nil: it stays in found.
	out *collector

	budget *budget

	// malformed says that readers differ on what is text: a quoted string or
	// comment is never closed, a backslash is outside of both, a quoted string
	// is part of a domain. Once a mark is not closed no later one is looked
	// for, so the work stays linear.
	malformed          bool
	noQuote, noComment bool

	member     int  // where the present member starts in text
	first      int  // its first address in found
	firstForm  int  // its first form in forms
	angle      int  // its first address in angle brackets in found, or -1: no bracket yet
	angleForms int  // its first form in angle brackets in forms
	inside     bool // angle brackets are open
	unclear    bool // they hold another bracket, or a list: they may be none

	addrs chain
}

// scanAs scans a text and appends the addresses in it to found.
func (b *budget) scanAs(m mode, text string, found []string) []string {
	s := scanner{text: text, mode: m, found: found, budget: b}
	s.run()
	for _, f := range s.forms {
		s.found = append(s.found, f.text) // nothing but addresses is there
	}
	return s.found
}

// run scans the whole text.
func (s *scanner) run() {
	s.addrs.decode, s.addrs.budget = s.mode == byGrammar, s.budget
	s.startMember()
	for s.pos < len(s.text) && !s.budget.spent() {
		s.step()
	}
	s.endChain(s.inside)
	s.endMember(true)
}

// step takes one token.
func (s *scanner) step() {
	c := s.text[s.pos]
	if c != ' ' && c != '\t' {
		s.budget.spend(1)
	}
	switch c {
	case ' ', '\t', ')':
		s.addrs.cur.gap(bySpace)
	case '"':
		if s.quoted() {
			return
		}
		s.addrs.cur.gap(bySpace)
	case '(':
		if s.comment() {
			return
		}
		s.addrs.cur.gap(bySpace)
	case '\\':
		if s.escaped() {
			return
		}
		s.addrs.backslash()
	case '[':
		if s.literal() {
			return
		}
		s.addrs.cur.gap(byMark)
	case ']':
		s.addrs.cur.gap(byMark)
	case '@':
		s.noteForms(true, false)
		s.addrs.setAside = !s.inside
		s.found = s.addrs.at(s.found)
		s.takeAside()
	case '<':
		s.endChain(false)
		s.unclear = s.unclear || s.inside
		s.inside = true
		if s.angle < 0 {
			s.angle, s.angleForms = len(s.found), len(s.forms)
		}
	case '>':
		s.endChain(s.inside)
		s.pos++
		s.endMember(true)
		return
	case ',', ';', ':':
		if !s.inside {
			kept := len(s.forms)
			s.endChain(false)
			s.pos++
			if c == ':' { // in front of a colon is a group's name, or a route
				s.dropForms(kept, len(s.forms))
			}
			s.endMember(c != ':')
			return
		}
		s.unclear = s.unclear || c != ':' && !s.addrs.isRoute()
		kept := len(s.forms)
		route := s.addrs.isRoute()
		s.endChain(false)
		if route {
			s.forms = s.forms[:kept]
		}
		s.plainForms(kept)
	default:
		s.char()
		return
	}
	s.pos++
}

// char takes characters of a word, or one that separates words.
func (s *scanner) char() {
	end := s.pos
	for end < len(s.text) && plain[s.text[end]] {
		end++
	}
	if end > s.pos {
		s.addrs.cur.add(s.text[s.pos:end])
		s.pos = end
		return
	}
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	if unicode.IsSpace(r) || unicode.IsControl(r) {
		s.addrs.cur.gap(bySpace)
	} else {
		s.addrs.cur.add(s.text[s.pos : s.pos+size])
	}
	s.pos += size
}

// plain marks the bytes of atoms and dots that are ASCII.
var plain = func() (t [256]bool) {
	for c := byte('!'); c <= '~'; c++ {
		t[c] = isAtext(string(rune(c)))
	}
	return t
}()

// quoted takes a quoted string as part of a word. It reports false where the
// quote is none.
func (s *scanner) quoted() bool {
	if s.mode != byGrammar || s.noQuote {
		return false
	}
	for i := s.pos + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			s.malformed = s.malformed || s.addrs.touchesDomain()
			s.addrs.cur.addQuoted(s.text[s.pos+1 : i])
			s.pos = i + 1
			return true
		}
	}
	s.noQuote, s.malformed = true, true
	return false
}

// comment skips a comment, nested ones included. It reports false where the
// parenthesis opens none.
func (s *scanner) comment() bool {
	if s.mode == asRaw || s.noComment {
		return false
	}
	depth := 0
	for i := s.pos; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				s.addrs.cur.gap(byMark)
				s.pos = i + 1
				return true
			}
		}
	}
	s.noComment, s.malformed = true, true
	return false
}

// escaped takes a quoted pair outside of quotes: some readers know them there,
// the grammar does not.
func (s *scanner) escaped() bool {
	if s.mode != byGrammar {
		return false
	}
	s.malformed = true
	next := s.pos + 1
	if next == len(s.text) || s.text[next] <= ' ' || s.text[next] >= 0x7f {
		return false
	}
	s.addrs.cur.add(s.text[next : next+1])
	s.pos += 2
	return true
}

// literal takes an address literal, brackets included, right behind an "@".
// One that holds what is no part of an IP address or host name is none, so that
// no bracket hides an address.
func (s *scanner) literal() bool {
	if !s.addrs.wantsDomain() {
		return false
	}
	for i := s.pos + 1; i < len(s.text); i++ {
		c := s.text[i]
		if c == ']' {
			s.addrs.cur.add(s.text[s.pos : i+1])
			s.pos = i + 1
			return true
		}
		if !isHostByte(c) && c != ':' && c != ' ' && c != '\t' {
			break
		}
	}
	return false
}

// endChain ends a row of words and @ signs. Closed says that it filled angle
// brackets to their end.
func (s *scanner) endChain(closed bool) {
	s.noteForms(false, closed)
	s.addrs.setAside = !s.inside
	s.found = s.addrs.end(s.found, closed)
	s.takeAside()
}

// takeAside takes the addresses that may be a part of a name for forms.
func (s *scanner) takeAside() {
	for _, address := range s.addrs.aside {
		s.forms = append(s.forms, form{text: address, kind: spacedAt})
	}
	s.addrs.aside = s.addrs.aside[:0]
}

func (s *scanner) startMember() {
	if s.out != nil {
		s.out.take(s.found, s.forms)
		s.found, s.forms = s.found[:0], s.forms[:0]
	}
	s.member, s.first, s.firstForm, s.angle = s.pos, len(s.found), len(s.forms), -1
	s.inside, s.unclear = false, false
}

// endMember settles which of a member's addresses count. Shown says that a
// reader shows the text of a member that has none.
func (s *scanner) endMember(shown bool) {
	if s.unclear {
		s.plainForms(0)
	} else if s.angle >= 0 && len(s.found) > s.angle {
		s.forms = append(s.forms[:s.firstForm], s.forms[s.angleForms:]...) // the rest is a display name
	} else if s.angle >= 0 {
		s.dropForms(s.firstForm, s.angleForms)
	}
	switch {
	case s.unclear: // a reader may end the member elsewhere, so all of it counts
		s.readText(s.text[s.member:s.pos])
	case s.angle >= 0 && len(s.found) > s.angle:
		s.found = append(s.found[:s.first], s.found[s.angle:]...)
		if s.out != nil {
			s.out.angled = true
		}
	case shown && (s.angle >= 0 || len(s.found) == s.first):
		s.readText(s.text[s.member:s.pos])
	}
	s.startMember()
}

// readText looks for addresses in what a member's quoted strings and
// encoded-words say.
func (s *scanner) readText(member string) {
	if s.mode != byGrammar || !mayHoldAddress(member) {
		return
	}
	if !strings.Contains(member, "=?") && !strings.ContainsAny(member, `"\`) {
		return // nothing that the first look did not see
	}
	text := scanner{text: s.budget.decodeWords(member), mode: asText, found: s.found, budget: s.budget}
	text.run()
	s.found, s.forms = text.found, append(s.forms, text.forms...)
}
