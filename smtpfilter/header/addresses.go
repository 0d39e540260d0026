package header

import (
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
)

// This package does not use display names. So go-message does not decode their charsets:
// some are slow, and a header may have thousands of encoded-words.
func init() {
	message.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil }
}

// read finds the addresses and forms in a field's unfolded value.
//
// go-message parses the clean values, which is nearly all mail. It follows the grammar
// and accepts the whole value or nothing, so a value that it accepts is unambiguous. The
// scanner reads the others.
func (c *collector) read(value string) {
	if mayHoldAddress(value) && isClean(value) {
		if found := c.budget.parse(value); len(found) > 0 {
			c.take(found, nil)
			return
		}
	}
	c.scan(value)
}

// mayHoldAddress reports whether a text has an "@", plain or perhaps encoded.
func mayHoldAddress(text string) bool {
	return strings.Contains(text, "@") || strings.Contains(text, "=?")
}

// maxClean is the longest value, in bytes, that go-message parses. Its parser copies the
// rest of its input into some errors and promises no bound on its work; the scanner does.
const maxClean = 4096

// isClean reports whether a value is printable ASCII of a usual length. The scanner reads
// others, since go-message accepts any Unicode space as part of an address.
func isClean(value string) bool {
	if len(value) > maxClean {
		return false
	}
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	return true
}

// parse returns the addresses that go-message finds, nil after an error.
func (b *budget) parse(value string) []string {
	b.spend(len(value) / parsedPerWord)
	list, err := mail.ParseAddressList(value) // what Header.AddressList calls, without a Header
	if err != nil {
		return nil
	}
	found := make([]string, 0, len(list))
	for _, a := range list {
		// The local part has no quotes, and the domain has no "@".
		pos := strings.LastIndexByte(a.Address, '@')
		found = b.appendAddress(found, []byte(a.Address[:pos]), []byte(a.Address[pos+1:]), true)
	}
	return found
}

// scan reads a value that is not clean, in all readings.
func (c *collector) scan(value string) {
	c.budget.seen = seen{}
	c.scanOnce(value)
	others, opaque := c.budget.seen.others(), c.budget.seen.opaque
	c.guessing = true
	for _, c.budget.reading = range others {
		c.scanOnce(value)
	}
	c.guessing, c.budget.reading = false, reading{}
	isGuess := func(f form) bool { return f.kind == guessed }
	if opaque != "" && !c.named && !slices.ContainsFunc(c.value, isGuess) {
		c.unreadable = append(c.unreadable, Sender{Field: c.field, Address: strings.Clone(opaque)})
	}
}

// withoutOpen returns a text with a space for each parenthesis from an index on that is never
// closed.
func withoutOpen(text string, from int) string {
	out := []byte(text)
	var open []int
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(':
			open = append(open, i)
		case ')':
			open = open[:max(0, len(open)-1)]
		}
	}
	for _, i := range open {
		out[i] = ' '
	}
	return string(out)
}

// scanOnce reads a value in the present reading.
func (c *collector) scanOnce(value string) {
	s := scanner{text: c.budget.clean(value), mode: byGrammar, out: c, budget: &c.budget}
	s.run()
	if !c.guessing {
		c.plain, c.malformed = c.named, s.malformed
	}
	if s.noComment { // Sendmail closes it at the end, nodemailer reads on
		guessing := c.guessing
		c.guessing = true
		for _, text := range []string{s.text[:s.openComment], withoutOpen(s.text, s.openComment)} {
			guess := scanner{text: text, mode: byGrammar, out: c, budget: &c.budget}
			guess.run()
		}
		c.guessing = guessing
	}
	mayHold := mayHoldAddress(value) || s.malformed && strings.ContainsAny(value, routeMarks)
	if c.plain && !s.malformed || !mayHold {
		return
	}
	raw := scanner{text: c.budget.decodeWords(s.text), mode: asRaw, out: c, budget: &c.budget}
	raw.run()
}
