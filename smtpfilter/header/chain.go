package header

import (
	"bytes"
	"strings"
)

// chain is a row of segments with "@" between them, such as a@b.example.
//
// The segment behind an @ holds the domain of the address there, and the local
// part of the next one. The words that count are those beside the @: in
// "Foo a@b.example Bar" they are a and b.example.
//
// Each @ makes an address of its own, and a row a@b@c is "a@b"@c besides, which
// is how Postfix reads it. So a row of any length gives addresses of a length
// linear in its own.
type chain struct {
	prev, cur segment // in front of the last @, and behind it
	open      bool    // there was an @
	row       []byte  // the unbroken row in front of the last @
	signs     int     // how many @ it holds
	decode    bool    // read encoded-words in addresses, too

	// aside takes the addresses that may be a part of a name, while setAside is set.
	aside    []string
	setAside bool
	budget   *budget
}

// wantsDomain reports that nothing stands behind the last @ so far.
func (c *chain) wantsDomain() bool { return c.open && c.cur.empty() }

// isRoute reports that the row is an @ and a domain alone.
func (c *chain) isRoute() bool { return c.open && c.prev.empty() && !c.cur.empty() }

// touchesDomain reports that what comes next stands in a domain, or against it.
func (c *chain) touchesDomain() bool {
	return c.open && (c.cur.empty() || c.cur.pending == byNothing)
}

// backslash takes one that quotes nothing. It is dropped, and may end a word;
// where it is all of a local part, that is empty and the domain still counts.
func (c *chain) backslash() {
	if !c.open && c.cur.empty() {
		c.cur.add("")
		return
	}
	c.cur.gap(byMark)
}

// at takes an @ and appends the address that it completes.
func (c *chain) at(found []string) []string {
	if c.wantsDomain() {
		return found // @@ is read as one
	}
	if c.open && c.cur.isRun() {
		found = c.appendPair(found, false)
		c.row = append(append(c.row, '@'), c.cur.buf...)
		c.signs++
	} else {
		found = c.appendLast(found, false)
		_, tail := c.cur.tail()
		c.row, c.signs = append(c.row[:0], tail...), 0
	}
	c.prev, c.cur = c.cur, c.prev
	c.cur.reset()
	c.open = true
	return found
}

// end ends the row and appends the address that it completes. Closed says that
// the row filled angle brackets to their end: there the domain is all of the
// words behind the @, too, for some readers drop the space inside brackets
// ("<a@host. example>", a domain that was folded in its middle).
func (c *chain) end(found []string, closed bool) []string {
	found = c.appendLast(found, closed)
	c.prev.reset()
	c.cur.reset()
	c.open, c.row, c.signs = false, c.row[:0], 0
	return found
}

// appendLast appends the addresses of the last @ of an unbroken row.
func (c *chain) appendLast(found []string, closed bool) []string {
	found = c.appendPair(found, closed)
	if c.open && c.signs > 0 && !c.cur.empty() {
		_, domain := c.cur.head()
		found = c.budget.appendAddress(found, c.row, domain, c.decode)
	}
	return found
}

// appendPair appends what the words on both sides of the last @ make.
func (c *chain) appendPair(found []string, closed bool) []string {
	if !c.open || c.prev.empty() || c.cur.empty() {
		return found
	}
	if c.setAside && c.isSpaced() {
		c.setAside = false
		c.aside = c.appendPair(c.aside, closed)
		return found
	}
	word, local := c.prev.tail()
	first, domain := c.cur.head()
	found = c.budget.appendAddress(found, local, domain, c.decode)
	shortLocal, shortDomain := len(word) < len(local), len(first) < len(domain)
	if shortLocal {
		found = c.budget.appendAddress(found, word, domain, c.decode)
	}
	if shortDomain {
		found = c.budget.appendAddress(found, local, first, c.decode)
	}
	if shortLocal && shortDomain {
		found = c.budget.appendAddress(found, word, first, c.decode)
	}
	if closed && len(c.cur.buf) > len(domain) {
		found = c.budget.appendAddress(found, local, c.cur.buf, c.decode)
	}
	return found
}

// isSpaced reports whether the last @ has space on both sides, and a domain without a
// dot: "Sales @ Acme". Encoded-words are left out, since they may hide a dot.
func (c *chain) isSpaced() bool {
	if c.prev.pending != bySpace || c.cur.words[0].before != bySpace {
		return false
	}
	_, local := c.prev.tail()
	_, domain := c.cur.head()
	if bytes.Contains(local, encodedStart) || bytes.Contains(domain, encodedStart) {
		return false
	}
	return !strings.ContainsAny(cleanHost(string(visible(domain))), ".[]:")
}
