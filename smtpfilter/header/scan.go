package header

import (
	"unicode"
	"unicode/utf8"
)

// mode says which marks a scanner respects.
type mode uint8

const (
	byGrammar mode = iota // quoted strings, quoted pairs, comments
	asText                // comments only: for the text of quoted strings and encoded-words
	asRaw                 // none: for a malformed value
)

// scanner scans an address list once and collects every address in it.
//
// The list consists of members. The scanner holds a member's addresses back until its end,
// because an address in angle brackets turns what comes before it into display text.
type scanner struct {
	text  string
	pos   int
	mode  mode
	found []string // addresses; of the present member only, if out is set
	forms []form   // likewise

	// out receives the addresses and forms of each member; nil leaves them in found
	// and forms.
	out *collector

	budget *budget

	// malformed says that readers disagree about what is text: a quoted string or
	// comment is never closed, a backslash is outside of both, or a quoted string is
	// part of a domain. After an unclosed mark the scanner looks for no other one of
	// its kind, so that its work stays linear.
	malformed          bool
	noQuote, noComment bool
	openComment        int // where the comment starts that is never closed

	member      int  // where the present member starts in text
	first       int  // index of its first address in found
	firstForm   int  // index of its first form in forms
	angle       int  // index of its first address in angle brackets in found; -1 before a bracket
	angleForms  int  // index of its first form in angle brackets in forms
	angleJoined int  // index of the first joined address in angle brackets
	angleStart  int  // where its first angle bracket is in text
	inside      bool // angle brackets are open
	unclear     bool // they have another bracket or a list in them
	unclosed    bool // they are not closed

	folds bool // "\r" is a fold, which ends quoted strings, comments and address literals

	route  []string // the domains of the present source route
	routed int      // the number of addresses in found when it began

	addrs chain
}

// scanAs scans a text and appends its addresses to found.
func (b *budget) scanAs(m mode, text string, found []string) []string {
	s := scanner{text: text, mode: m, found: found, budget: b}
	s.run()
	for _, f := range s.forms {
		if f.kind == spacedAt || f.kind == guessed {
			s.found = append(s.found, f.text)
		}
	}
	return s.found
}

func (s *scanner) run() {
	s.addrs.decode, s.addrs.budget = s.mode == byGrammar, s.budget
	s.startMember()
	for s.pos < len(s.text) && !s.budget.spent() {
		s.step()
	}
	s.endChain(s.inside)
	s.unclosed = s.inside
	s.endMember(true)
}

func (s *scanner) step() {
	c := s.text[s.pos]
	if c != ' ' && c != '\t' {
		s.budget.spend(1)
	}
	switch c {
	case ' ', '\t', '\r', ')', '"', '(':
		if c == '"' && s.quoted() || c == '(' && s.comment() {
			return
		}
		if s.addrs.cur.gap(spaceGap); c == ')' || c == '"' {
			s.addrs.cur.mark(spaceGap)
		}
	case '\\':
		if s.escaped() {
			return
		}
		s.addrs.backslash()
	case '[', ']':
		if c == '[' && s.literal() {
			return
		}
		s.addrs.cur.mark(markGap)
	case '@':
		s.chainForms(true, false)
		s.addrs.setAside = !s.inside
		s.found = s.addrs.at(s.found)
		s.takeAside()
	case '<':
		s.endChain(false)
		s.unclear = s.unclear || s.inside
		s.inside = true
		if s.angle < 0 {
			s.angle, s.angleForms, s.angleStart = len(s.found), len(s.forms), s.pos
			s.angleJoined = len(s.addrs.joined)
		}
	case '>':
		s.endChain(s.inside)
		s.pos++
		s.endMember(true)
		return
	case ',', ';', ':':
		if !s.inside {
			kept, route := len(s.forms), s.addrs.routeDomain()
			s.endChain(false)
			s.pos++
			if c == ':' { // a group's name or a route comes before a colon; dropForms leaves the route's domain
				s.dropForms(kept, len(s.forms))
			}
			s.endMember(c != ':')
			if c == ':' {
				s.addRoute(route)
			}
			return
		}
		kept, route := len(s.forms), s.addrs.routeDomain()
		s.unclear = s.unclear || c != ':' && route == ""
		s.endChain(false)
		if route != "" {
			s.forms = s.forms[:kept]
			s.addRoute(route)
		}
		s.nameForms(kept)
	default:
		s.char()
		return
	}
	s.pos++
}

// char reads characters of a word, or one that separates words.
func (s *scanner) char() {
	end := s.pos
	for end < len(s.text) && isPlain[s.text[end]] {
		end++
	}
	if end > s.pos {
		s.addrs.cur.add(s.text[s.pos:end])
		s.pos = end
		return
	}
	r, size := utf8.DecodeRuneInString(s.text[s.pos:])
	if unicode.IsSpace(r) || unicode.IsControl(r) {
		s.addrs.cur.gap(spaceGap)
	} else {
		s.addrs.cur.add(s.text[s.pos : s.pos+size])
	}
	s.pos += size
}

// isPlain has the ASCII bytes of atoms and dots.
var isPlain = func() (t [256]bool) {
	for c := byte('!'); c <= '~'; c++ {
		t[c] = isAtext(string(rune(c)))
	}
	return t
}()

// quoted reads a quoted string as part of a word. It reports whether there is one.
func (s *scanner) quoted() bool {
	if s.mode != byGrammar || s.noQuote {
		return false
	}
	for i := s.pos + 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"', '\r':
			if s.text[i] == '\r' && !s.folds {
				continue
			}
			s.malformed = s.malformed || s.addrs.touchesDomain()
			s.addrs.cur.addQuoted(s.text[s.pos+1 : i])
			s.pos = i + 1
			return true
		}
	}
	s.noQuote, s.malformed = true, true
	return false
}

// comment skips a comment, with those nested in it. It reports whether there is one.
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
			depth--
		case '\r':
			if s.folds {
				depth = 0
			}
		}
		if depth == 0 {
			s.addrs.cur.gap(markGap)
			s.pos = i + 1
			return true
		}
	}
	s.noComment, s.openComment, s.malformed = true, s.pos, true
	return false
}

// escaped reads a quoted pair outside of quotes, which some readers accept and the grammar
// does not. It reports whether there is one.
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

// literal reads an address literal, with its brackets, directly after an "@". It reports
// whether there is one. Brackets with characters that are not part of an IP address or
// host name are not a literal, so that no bracket hides an address.
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

// endChain ends a chain. Closed says that the chain fills angle brackets.
func (s *scanner) endChain(closed bool) {
	s.chainForms(false, closed)
	s.addrs.setAside = !s.inside
	s.found = s.addrs.end(s.found, closed)
	s.takeAside()
}

// takeAside adds the addresses that may be part of a name to the forms.
func (s *scanner) takeAside() {
	for _, address := range s.addrs.aside {
		s.forms = append(s.forms, form{text: address, kind: spacedAt})
	}
	s.addrs.aside = s.addrs.aside[:0]
}
