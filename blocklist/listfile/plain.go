package listfile

import (
	"strings"
	"unicode"

	"spamgate/blocklist/sender"
)

// plainLine reads a line of a plain list; see the package's comment.
func plainLine(o *output, line int, text string) {
	quick := quickEntry
	if o.options.PerRecipient {
		quick = quickSides
	}
	if e, ok := quick(text, &o.options); ok {
		e.Line = line
		o.add(e)
		return
	}
	slowPlainLine(o, line, text)
}

// slowPlainLine reads any line of a plain list.
func slowPlainLine(o *output, line int, text string) {
	s, reason, note := splitComment(strings.TrimLeft(text, " \t"))
	e, err := parseSides(s, o.options)
	if err == nil {
		e.Reason, e.Note, e.Until, err = splitUntil(reason, note)
	}
	if err != nil {
		o.refuse(line, explainLine(s, o.options, err))
		return
	}
	o.warn(e, line, s)
	e.Line, e.Reason, e.Note = line, cleanText(e.Reason), cleanText(e.Note)
	o.add(e)
}

// uncommented reads an entry of a plain list that cannot have a comment: a cell or
// a string. It may also be a URL.
func (o *output) uncommented(line int, text string) {
	if len(text) > MaxLine {
		o.refuse(line, tooLong(text))
		return
	}
	if scheme, _, ok := strings.Cut(trim(text), "://"); ok && isScheme(scheme) {
		e, err := o.urlHost(trim(text))
		o.putURL(line, text, e, err)
		return
	}
	e, err := parseEntry(text, o.options)
	if err != nil {
		o.refuse(line, explain(text, o.options, err))
		return
	}
	o.warn(e, line, text)
	e.Line = line
	o.add(e)
}

// splitUntil removes the expiry from both parts of a comment, and returns it.
func splitUntil(reason, note string) (_, _ string, until int64, err error) {
	reason, until, err = takeUntil(reason)
	if err != nil {
		return "", "", 0, err
	}
	note, second, err := takeUntil(note)
	if until == 0 || second != 0 && second < until {
		until = second
	}
	return reason, note, until, err
}

// splitComment splits a line into its entry and the two parts of a trailing
// comment.
func splitComment(s string) (entry, reason, note string) {
	pos := commentStart(s)
	if pos < 0 {
		return s, "", ""
	}
	entry, comment := s[:pos], s[pos:]
	reason, note, _ = strings.Cut(comment, "##")
	reason = strings.TrimPrefix(reason, "#")
	note = strings.TrimLeft(note, "#")
	return entry, strings.TrimSpace(reason), strings.TrimSpace(note)
}

// commentStart returns the index of the # that starts a trailing comment, or -1. White
// space precedes that #, and it is not inside a quoted local part.
func commentStart(s string) int {
	if strings.IndexByte(s, '#') < 0 {
		return -1
	}
	return unquotedIndex(s, func(i int) bool { return s[i] == '#' && i > 0 && isBlank(s[i-1]) })
}

// unquotedIndex returns the first index outside quotes that match accepts, or -1.
func unquotedIndex(s string, match func(i int) bool) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case !quoted && match(i):
			return i
		}
	}
	return -1
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// cleanText returns s as valid UTF-8 without control characters. Damage in a
// comment does not make its entry invalid.
func cleanText(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}
	return strings.Map(clean, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}

// maxText is the greatest length of a text that a Problem quotes.
const maxText = 120

// clip makes s printable and cuts it to maxText bytes.
func clip(s string) string {
	if len(s) > 4*maxText {
		s = s[:4*maxText] // more is not shown
	}
	// Cloned: a problem outlives the text that it quotes.
	s = strings.Clone(cleanText(strings.TrimSpace(s)))
	if len(s) <= maxText {
		return s
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(s[:maxText-len(ellipsis)], "") + ellipsis
}

// quick are the characters of entries that quickEntry reads: those that every
// normal form leaves unchanged in any place.
var quick = func() (t [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyz0123456789-_." {
		t[c] = true
	}
	return t
}()

// quickEntry reads a domain or an address in normal form and nothing else, like
// nearly every line of a large list. If it returns false, parseEntry decides;
// otherwise it agrees with parseEntry.
func quickEntry(s string, o *Options) (Entry, bool) {
	pos := -1
	for i := range len(s) {
		if quick[s[i]] {
			continue
		}
		if s[i] != '@' || pos >= 0 {
			return Entry{}, false
		}
		pos = i
	}
	d := s[pos+1:]
	if pos == 0 || !quickDomain(d) {
		return Entry{}, false
	}
	if pos > 0 {
		return Entry{Key: s, Kind: sender.KindAddress}, true
	}
	if o.Exact {
		return Entry{}, false
	}
	if !o.AllowPublicSuffix {
		if icann, private := suffixOf(d); icann || private || strings.IndexByte(d, '.') < 0 {
			return Entry{}, false
		}
	}
	return Entry{Key: s, Kind: sender.KindDomain}, true
}

// quickDomain reports whether d, which has only quick characters, is a domain in
// normal form and certainly not an IPv4 address.
func quickDomain(d string) bool {
	if d == "" || len(d) > sender.MaxDomain || hasLongLabel(d) || d[0] == '.' || strings.Contains(d, "..") {
		return false
	}
	last := d[len(d)-1]
	return last != '.' && (last < '0' || last > '9')
}
