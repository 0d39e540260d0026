package header

import (
	"bytes"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// workPerAddress is how much a header may cost for each address that it may hold.
// A word, a mark, an address and a form cost one each, and a mailbox with a display
// name of three words about eight.
const workPerAddress = 16

// How many bytes cost as much as one word.
const (
	parsedPerWord = 8    // of a value that go-message parses
	oddPerWord    = 24   // of a part of an address with routes, or not all of printable ASCII
	plainPerWord  = 1024 // of any other part
)

// spendPart charges for a reading of a part of an address.
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

// What costs more than a word.
const (
	workPerValue   = 4  // of a field
	workPerEncoded = 2  // word that is decoded
	workPerUnknown = 14 // charset that is looked for in vain
	workPerBeside  = 1  // form that is most likely a part of a name, besides
)

// budget is what reading a section may still cost. All that reads it shares one.
type budget struct {
	left     int
	charsets map[string]encoding.Encoding // of encoded-words, those that are known
}

func (b *budget) spend(n int) { b.left -= n }

// spent reports whether no more is to be read.
func (b *budget) spent() bool { return b.left < 0 }

// charset returns the decoder's encoding for a charset, nil if it is not known. Text in
// one that is not known is read as ASCII. Those that are known are a few hundred names,
// so that remembering them is bounded; looking for others is charged each time.
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
