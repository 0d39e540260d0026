package header

import (
	"bytes"

	"golang.org/x/text/encoding"
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
	charsets map[string]encoding.Encoding // of encoded-words
}

func (b *budget) spend(n int) { b.left -= n }

// spent reports whether nothing more may be read.
func (b *budget) spent() bool { return b.left < 0 }

// charset returns the encoding of a charset, nil if it is unknown. Text in an unknown
// charset is read as ASCII. Only known charsets are cached, so that the cache has at most
// a few hundred names; the lookup of an unknown one is charged each time.
func (b *budget) charset(name string) encoding.Encoding {
	if e, ok := b.charsets[name]; ok {
		return e
	}
	e, err := ianaindex.MIME.Encoding(name)
	if err != nil || e == nil {
		e, err = htmlindex.Get(name)
	}
	if err != nil || e == nil {
		b.spend(workPerUnknown)
		return nil
	}
	if b.charsets == nil {
		b.charsets = map[string]encoding.Encoding{}
	}
	b.charsets[name] = e
	return e
}
