package header

import (
	"bytes"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// workPerAddress is how much work a header may cost for each address that it may have. A
// word, a mark, an address and a form cost 1 each; a mailbox with a display name of three
// words costs about 8.
const workPerAddress = 16

// How many bytes cost as much as one word.
const (
	parsedPerWord = 8    // in a value that go-message parses
	oddPerWord    = 24   // in a part of an address with routes, or with other than printable ASCII
	plainPerWord  = 1024 // in any other part
)

// spendPart charges for reading a part of an address.
func (b *budget) spendPart(part []byte) {
	if len(part) < oddPerWord {
		return
	}
	if isPrintable(part) && !bytes.ContainsAny(part, routeMarks) {
		b.spend(len(part) / plainPerWord)
		return
	}
	b.spend(len(part) / oddPerWord)
}

// The cost of what is more work than a word.
const (
	workPerValue   = 4  // a field's value
	workPerEncoded = 2  // an encoded-word that is decoded
	workPerUnknown = 14 // looking up an unknown charset
	workPerBeside  = 1  // an additional form that is Beside
)

// budget is the work that reading a section may still cost. All readers of a section
// share it.
type budget struct {
	left     int
	charsets map[string]charset // of encoded-words

	reading reading // the present one
	seen    seen    // in the present value
}

// charset is how a charset is read.
type charset struct {
	encoding encoding.Encoding // nil if the charset is unknown
	foreign  bool              // it is not a superset of ASCII, or may not be
}

func (b *budget) spend(n int) { b.left -= n }

// exhaust ends the reading of the section: it is too complex.
func (b *budget) exhaust() { b.left = -1 }

// spent reports whether nothing more may be read.
func (b *budget) spent() bool { return b.left < 0 }

// charset returns how a charset is read. The cache has the few hundred names of known
// charsets at most, and those of unknown ones that were charged. The replacement encoding,
// which HTML gives to charsets that browsers must not decode, is none.
func (b *budget) charset(name string) charset {
	if c, ok := b.charsets[name]; ok {
		return c
	}
	e, err := ianaindex.MIME.Encoding(name)
	if err != nil || e == nil {
		e, err = htmlindex.Get(name)
	}
	var c charset
	if err != nil || e == nil || e == encoding.Replacement {
		b.spend(workPerUnknown)
	} else {
		c = charset{encoding: e, foreign: !hasASCII(e)}
	}
	if b.charsets == nil {
		b.charsets = map[string]charset{}
	}
	b.charsets[name] = c
	return c
}

// hasASCII reports whether an encoding of single bytes is a superset of ASCII. It is false for
// all others: bytes of their characters may look like ASCII.
func hasASCII(e encoding.Encoding) bool {
	table, ok := e.(*charmap.Charmap)
	for c := byte(' '); ok && c <= '~'; c++ {
		ok = table.DecodeByte(c) == rune(c)
	}
	return ok
}
