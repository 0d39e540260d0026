package header

import "strings"

// startMember passes the last member on and begins the next.
func (s *scanner) startMember() {
	if s.out != nil {
		s.out.take(s.found, s.forms)
		s.found, s.forms = s.found[:0], s.forms[:0]
	}
	s.member, s.first, s.firstForm, s.angle = s.pos, len(s.found), len(s.forms), -1
	s.inside, s.unclear, s.route = false, false, s.route[:0]
}

// endMember decides which of a member's addresses count. Shown says that a reader shows
// the text of a member without an address.
func (s *scanner) endMember(shown bool) {
	if s.mode == byGrammar && len(s.route) > 0 && len(s.found) == s.first && len(s.forms) == s.firstForm {
		for _, domain := range s.route {
			s.addForm([]byte("@"+domain), domainOnly, false)
		}
	}
	if s.unclear {
		s.nameForms(0)
	} else if s.angle >= 0 && len(s.found) > s.angle {
		s.forms = append(s.forms[:s.firstForm], s.forms[s.angleForms:]...) // the rest is a display name
		s.guessPhrase()
	} else if s.angle >= 0 {
		s.dropForms(s.firstForm, s.angleForms)
	}
	switch {
	case s.unclear: // readers may end the member elsewhere, so all of it counts
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

// guessPhrase adds the addresses before the angle brackets, which some readers take for the
// member's. Those inside an encoded-word or a quoted string are part of a name.
func (s *scanner) guessPhrase() {
	found := s.found[s.first:s.angle]
	if len(found) == 0 {
		return
	}
	if phrase := s.text[s.member:s.angleStart]; s.mode == byGrammar && strings.Contains(phrase, "=?") {
		phrase = s.budget.replaceWords(phrase, func(encodedWord) string { return " " })
		rest := scanner{text: phrase, mode: byGrammar, budget: s.budget}
		rest.run()
		found = rest.found
	}
	for _, address := range found {
		s.forms = append(s.forms, form{text: address, kind: guessed})
	}
}

// readText reads the addresses in a member's quoted strings and encoded-words.
func (s *scanner) readText(member string) {
	if s.mode != byGrammar || !mayHoldAddress(member) {
		return
	}
	if !strings.Contains(member, "=?") && !strings.ContainsAny(member, `"\`) {
		return // the first scan has seen all of it
	}
	text := scanner{text: s.budget.decodeWords(member), mode: asText, found: s.found, budget: s.budget}
	text.run()
	s.found, s.forms = text.found, append(s.forms, text.forms...)
}
