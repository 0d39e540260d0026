package header

import (
	"io"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
)

// Nothing here uses the names beside addresses, so go-message is given a reader of
// charsets that does not decode them: some charsets are slow, and a header may hold
// thousands of encoded-words.
func init() {
	message.CharsetReader = func(_ string, text io.Reader) (io.Reader, error) { return text, nil }
}

// read finds the addresses and forms of one field's unfolded value.
//
// go-message reads the clean ones, which is nearly all mail. It parses by the
// grammar and takes the whole value or none of it, so whatever it takes has one
// meaning. The rest is scanned.
func (c *collector) read(value string) {
	if mayHoldAddress(value) && isClean(value) {
		if found := c.budget.parse(value); len(found) > 0 {
			c.take(found, nil)
			return
		}
	}
	c.scan(value)
}

// mayHoldAddress rules out the values without an "@", written or encoded.
func mayHoldAddress[T string | []byte](text T) bool {
	for i, c := range []byte(text) {
		if c == '@' || c == '=' && i+1 < len(text) && text[i+1] == '?' {
			return true
		}
	}
	return false
}

// maxClean is the longest value, in bytes, that go-message is given. Its parser
// formats what is left of its input into some errors and promises no bound on
// its work; ours does.
const maxClean = 4096

// isClean reports printable ASCII of a usual length. Other bytes are left to
// the scanner: go-message takes any Unicode space for a part of an address.
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

// parse asks go-message; nil where it fails.
func (b *budget) parse(value string) []string {
	b.spend(len(value) / parsedPerWord)
	list, err := mail.ParseAddressList(value) // what Header.AddressList calls, without a Header
	if err != nil {
		return nil
	}
	found := make([]string, 0, len(list))
	for _, a := range list {
		// The local part comes without its quotes, the domain never has an @.
		at := strings.LastIndexByte(a.Address, '@')
		found = b.appendAddress(found, []byte(a.Address[:at]), []byte(a.Address[at+1:]), true)
	}
	return found
}

// scan reads a value that is not clean.
func (c *collector) scan(value string) {
	s := scanner{text: value, mode: byGrammar, out: c, budget: &c.budget}
	s.run()
	if c.named && !s.malformed || !mayHoldAddress(value) {
		return
	}
	raw := scanner{text: c.budget.decodeWords(value), mode: asRaw, out: c, budget: &c.budget}
	raw.run()
}
