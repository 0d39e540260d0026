package header

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// chain is a sequence of segments separated by "@", such as a@b.example.
//
// The segment after an @ has the domain of its address and the local part of the next
// one. The words beside the @ count: in "Foo a@b.example Bar" they are a and b.example.
//
// Each @ makes an address of its own. A row without space, a@b@c, is also "a@b"@c, which is
// how Postfix reads it. So the addresses of a row have a total length linear in its own.
type chain struct {
	prev, cur segment // before the last @, and after it
	open      bool    // there was an @
	row       []byte  // the row without space before the last @
	signs     int     // the number of @ in row
	doubled   bool    // there was an @ directly after another
	decode    bool    // read encoded-words in addresses too

	// While setAside is set, addresses that may be part of a name go to aside.
	aside    []string
	setAside bool
	joined   []string // addresses of the present member with more words than belong to them
	budget   *budget
}

// wantsDomain reports whether the last @ has nothing after it yet.
func (c *chain) wantsDomain() bool { return c.open && c.cur.empty() }

// routeDomain returns the domain of a chain that may be a source route, else "".
func (c *chain) routeDomain() string {
	if !c.isDomain() {
		return ""
	}
	_, domain := c.cur.head()
	return string(domain)
}

// isDomain reports whether the chain is only an @ and a domain.
func (c *chain) isDomain() bool { return c.open && c.prev.empty() && !c.cur.empty() }

// touchesDomain reports whether what comes next is in a domain or next to it.
func (c *chain) touchesDomain() bool {
	return c.open && (c.cur.empty() || c.cur.pending == noGap)
}

// backslash drops a backslash that quotes nothing; it may end a word. If it is the whole
// local part, that is empty and the domain still counts.
func (c *chain) backslash() {
	if !c.open && c.cur.empty() {
		c.cur.add("")
		return
	}
	c.cur.mark(markGap)
}

// at reads an @ and appends the address that it completes.
func (c *chain) at(found []string) []string {
	if c.wantsDomain() {
		c.doubled = true
		return found // @@ is read as one
	}
	c.join(false)
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

// end ends the chain and appends the address that it completes. Closed says that the
// chain fills angle brackets. Some readers drop the space inside brackets, so there all
// words after the @ are a domain too ("<a@host. example>", a folded domain).
func (c *chain) end(found []string, closed bool) []string {
	found = c.appendLast(found, closed)
	c.join(closed)
	c.prev.reset()
	c.cur.reset()
	c.open, c.doubled, c.row, c.signs = false, false, c.row[:0], 0
	return found
}

// join adds to joined. Python drops the space between the words of a domain, up to a mark; Sendmail
// writes a dot between two words beside the @ (its BlankSub); nodemailer takes the longest part
// that begins and ends with an ASCII letter or digit.
func (c *chain) join(closed bool) {
	if !c.open || c.prev.empty() || c.cur.empty() {
		return
	}
	_, local := c.prev.tail()
	_, domain := c.cur.head()
	add := func(local, domain []byte) {
		c.budget.spend(1)
		if host := cleanHost(string(visible(domain))); host != "" && isAtext(host) {
			c.joined = append(c.joined, join(cutLocal(visible(local)), cutDomain(host)))
		}
	}
	if len(c.prev.words) > 1 {
		add(c.prev.dotted(), domain)
	}
	if len(c.cur.words) > 1 {
		dotted := c.cur.dotted()
		add(local, dotted)
		if len(c.prev.words) > 1 {
			add(c.prev.dotted(), dotted)
		}
		if !closed {
			add(local, c.cur.buf)
			if n := c.cur.toMark(); n < len(c.cur.words) {
				add(local, c.cur.text(0, n))
			}
		}
	}
	if c.isPart() {
		core, host := bytes.TrimLeftFunc(local, isNotWord), bytes.TrimRightFunc(domain, isNotWord)
		if !c.doubled && c.signs == 0 && bytes.HasPrefix(domain[len(host):], []byte(".")) {
			host = domain // a name with a last label that is not ASCII
		}
		if len(core) < len(local) || len(host) < len(domain) {
			add(core, host)
		}
	}
}

// isPart reports whether there is more than one local part, an "@" and one domain.
func (c *chain) isPart() bool {
	return len(c.prev.words)+len(c.cur.words) > 2 || c.cur.pending == spaceGap || c.doubled || c.signs > 0
}

// isNotWord reports whether a character is not an ASCII letter, digit or underscore.
func isNotWord(r rune) bool { return r != '_' && (r >= utf8.RuneSelf || !isWordRune(r)) }

// appendLast appends the addresses of the last @.
func (c *chain) appendLast(found []string, closed bool) []string {
	found = c.appendPair(found, closed)
	if c.open && c.signs > 0 && !c.cur.empty() {
		_, domain := c.cur.head()
		found = c.budget.appendAddress(found, c.row, domain, c.decode)
	}
	return found
}

// appendPair appends the addresses that the words beside the last @ make.
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

// isSpaced reports whether the last @ has space on both sides and a domain without a dot:
// "Sales @ Acme". It is false for encoded-words, which may hide a dot.
func (c *chain) isSpaced() bool {
	if c.prev.pending != spaceGap || c.cur.words[0].before != spaceGap {
		return false
	}
	_, local := c.prev.tail()
	_, domain := c.cur.head()
	if bytes.Contains(local, encodedStart) || bytes.Contains(domain, encodedStart) {
		return false
	}
	return !strings.ContainsAny(cleanHost(string(visible(domain))), ".[]:")
}
