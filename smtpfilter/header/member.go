package header

import "strings"

// startMember passes the last member on and begins the next.
func (s *scanner) startMember() {
	if s.out != nil {
		s.out.take(s.found, s.forms)
		s.found, s.forms = s.found[:0], s.forms[:0]
	}
	s.member, s.first, s.firstForm, s.angle = s.pos, len(s.found), len(s.forms), -1
	s.inside, s.unclear, s.route, s.addrs.joined = false, false, s.route[:0], s.addrs.joined[:0]
}

// endMember decides which of a member's addresses count. Shown says that a reader shows
// the text of a member without an address.
func (s *scanner) endMember(shown bool) {
	if len(s.route) > 0 && (s.unclear || len(s.found) == s.routed) {
		for _, domain := range s.route { // nothing after the route has another domain
			s.addForm([]byte("@"+domain), domainOnly, false)
		}
	}
	if s.unclear {
		s.nameForms(0)
	} else if s.angle >= 0 && len(s.found) > s.angle {
		s.dropForms(s.firstForm, s.angleForms) // the rest is a display name
		s.guessPhrase()
	} else if s.angle >= 0 {
		s.dropForms(s.firstForm, s.angleForms)
	}
	if s.unclosed { // Sendmail adds and removes quotes to close it
		s.guessText(s.text[s.member:s.pos], asRaw)
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
		if s.readText(s.text[s.member:s.pos]); len(s.found) > s.first {
			s.guessText(s.text[s.member:s.pos], asText)
		}
		s.guessText(s.text[s.member:s.pos], asRaw) // nodemailer looks into its comments
	case strings.Contains(s.text[s.member:s.pos], "=?"): // Python looks into them first
		s.guessText(s.text[s.member:s.pos], asText)
	}
	s.addGuesses(s.addrs.joined)
	s.startMember()
}

// guessPhrase adds the addresses before the angle brackets, which some readers take for the
// member's. Those inside a quoted string are part of a name, and those inside an encoded-word
// too, unless the phrase is none: it has an "@" elsewhere.
func (s *scanner) guessPhrase() {
	phrase := s.text[s.member:s.angleStart]
	if s.mode != byGrammar || !strings.Contains(phrase, "=?") {
		s.addGuesses(s.found[s.first:s.angle])
		return
	}
	s.addrs.joined = s.addrs.joined[s.angleJoined:]
	name := s.budget.replaceWords(phrase, func(encodedWord) string { return " " })
	if !strings.Contains(name, "@") {
		return
	}
	rest := scanner{text: name, mode: byGrammar, budget: s.budget}
	rest.run()
	s.addGuesses(rest.found)
	s.addDomains(rest.forms)
	s.guessText(phrase, asText)
}

// addGuesses adds addresses that only some readers see.
func (s *scanner) addGuesses(addresses []string) {
	for _, address := range addresses {
		s.forms = append(s.forms, form{text: address, kind: guessed})
	}
}

// guessText adds the addresses in a member's text that only some readers look for.
func (s *scanner) guessText(member string, m mode) {
	if s.mode != byGrammar || !mayHoldAddress(member) {
		return
	}
	texts := []string{s.budget.decodeWords(member)}
	if strings.Count(member, "=?") > 1 { // Python keeps the space between some encoded-words
		apart := func(w encodedWord) string { return " " + s.budget.decode(w) + " " }
		texts = append(texts, s.budget.replaceWords(member, apart))
	}
	for _, t := range texts {
		text := scanner{text: t, mode: m, budget: s.budget}
		text.run()
		s.addGuesses(text.found)
		s.addDomains(text.forms)
	}
}

// addDomains adds those of some forms that are not words.
func (s *scanner) addDomains(forms []form) {
	for _, f := range forms {
		if f.kind == domainOnly || f.kind == guessed {
			s.forms = append(s.forms, f)
		}
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
