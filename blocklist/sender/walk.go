package sender

import "bytes"

// Kind is the form of a key: what it matches.
type Kind uint8

const (
	KindAddress    Kind = iota // "user@example.com": one address
	KindAtDomain               // "@example.com": every address at exactly that domain or literal
	KindDomain                 // "example.com": every address there and at its subdomains
	KindSubdomains             // "*.example.com": subdomains only
	KindLocal                  // "user@": a local part at any domain
	KindNull                   // "<>": the null sender
	numKinds
)

var kindNames = [numKinds]string{"address", "at-domain", "domain", "subdomains", "local", "null"}

// String returns the kind's name, for logs and tools.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "unknown"
}

// KindSet is a set of kinds, a bit each. The zero KindSet is empty.
type KindSet uint8

// AllKinds holds every kind.
const AllKinds KindSet = 1<<numKinds - 1

// Has reports whether k is in the set.
func (s KindSet) Has(k Kind) bool { return s>>k&1 != 0 }

// With returns the set with k in it.
func (s KindSet) With(k Kind) KindSet { return s | 1<<k }

// Key is one key under which a list may hold an address.
type Key struct {
	Kind Kind

	// Rank is the key's place in the address's full sequence of candidates,
	// from 0, the most specific. Kinds that a Walk skips count, so the ranks
	// of one address compare across lists. Its 32 bits keep a Key small
	// enough for registers, which halves the time of a walk.
	Rank int32

	// Text is the key itself; the next call of Next may overwrite it.
	Text []byte
}

// Walk yields the candidate keys of an address, most specific first. For
// user+tag@a.b.c they are
//
//	user+tag@a.b.c
//	user@a.b.c
//	@a.b.c
//	a.b.c
//	*.b.c
//	b.c
//	*.c
//	c
//	user+tag@
//	user@
//
// A domain that is an address literal has no parents, and the null sender has
// the one key <>. The tag starts at the first + that is not the local part's
// first character.
type Walk struct {
	// text holds local@domain and, where there is a tag, base@domain behind
	// it, base being the local part without the tag.
	text   []byte
	pos    int // index of the first @
	end    int // length of local@domain
	base   int // length of base, 0 without a tag
	domain int // start of the domain or parent that is next
	rank   int32
	only   KindSet
	step   step
}

type step uint8

const (
	stepAddress step = iota
	stepBase
	stepAtDomain
	stepDomain
	stepSubdomains
	stepLocal
	stepBaseLocal
	stepNull
	stepEnd
)

// Walk starts a walk over all kinds. It works in buf, whose content it
// overwrites; twice the address's length is enough, else more is allocated.
func (a Address) Walk(buf []byte) Walk {
	if a.IsNull() {
		return Walk{text: append(buf[:0], "<>"...), only: AllKinds, step: stepNull}
	}
	w := Walk{
		pos:    a.pos,
		end:    len(a.text),
		domain: a.pos + 1,
		only:   AllKinds,
	}
	w.text, w.base = appendBase(append(buf[:0], a.text...), a.pos)
	return w
}

// appendBase appends the address in text, whose @ is at the given index, again
// without its tag, and returns the length of the local part then. Without a
// tag it appends nothing and returns 0.
func appendBase(text []byte, pos int) (_ []byte, base int) {
	end, start := len(text), 0
	if text[0] == '"' {
		start = 1
	}
	plus := bytes.IndexByte(text[start+1:pos], '+')
	if plus < 0 {
		return text, 0
	}
	content := text[start : start+1+plus]
	if start == 1 && needsQuotes(content) {
		// The escapes stay as they are: a + is never escaped, so the cut
		// splits none.
		text = append(text, '"')
		text = append(text, content...)
		text = append(text, '"')
	} else {
		text = append(text, content...)
	}
	base = len(text) - end
	return append(text, text[pos:end]...), base
}

// Only has the walk skip every kind that is not in s.
func (w *Walk) Only(s KindSet) { w.only = s }

// Next returns the next key, false at the end.
func (w *Walk) Next() (Key, bool) {
	for w.step != stepEnd {
		kind, text := w.advance()
		rank := w.rank
		w.rank++
		if w.only.Has(kind) {
			return Key{kind, rank, text}, true
		}
	}
	return Key{}, false
}

// advance returns the key of the current step and goes on to the next step.
func (w *Walk) advance() (Kind, []byte) {
	switch w.step {
	case stepAddress:
		w.step = stepAtDomain
		if w.base > 0 {
			w.step = stepBase
		}
		return KindAddress, w.text[:w.end]
	case stepBase:
		w.step = stepAtDomain
		return KindAddress, w.text[w.end:]
	case stepAtDomain:
		w.step = stepDomain
		if w.text[w.domain] == '[' {
			w.step = stepLocal
		}
		return KindAtDomain, w.text[w.pos:w.end]
	case stepDomain:
		return KindDomain, w.parent()
	case stepSubdomains:
		// The label in front has been yielded for the last time: its last
		// byte makes room for the asterisk.
		w.step = stepDomain
		w.text[w.domain-2] = '*'
		return KindSubdomains, w.text[w.domain-2 : w.end]
	case stepLocal:
		w.step = stepEnd
		if w.base > 0 {
			w.step = stepBaseLocal
		}
		return KindLocal, w.text[:w.pos+1]
	case stepBaseLocal:
		w.step = stepEnd
		return KindLocal, w.text[w.end : w.end+w.base+1]
	default: // stepNull
		w.step = stepEnd
		return KindNull, w.text
	}
}

// parent returns the domain that is next and moves on to its parent.
func (w *Walk) parent() []byte {
	d := w.text[w.domain:w.end]
	if dot := bytes.IndexByte(d, '.'); dot >= 0 {
		w.domain += dot + 1
		w.step = stepSubdomains
	} else {
		w.step = stepLocal
	}
	return d
}
