// Package header finds the senders in a message's header section.
//
// The gate judges whom a message says it is from, so what counts is not what
// the grammar allows but what somebody downstream may show as the sender or
// answer to. Senders therefore reads every field of a name and every address of a
// field, and where mail readers differ on what the address is, all of theirs. It
// never gives up on a field because one part of it is broken.
//
// # What is an address
//
//   - An addr-spec on its own, or one in angle brackets, also in groups, behind
//     routes, with comments and white space inside (RFC 5322, sections 3.4 and
//     4.4). Separators are "," and, as in Outlook, ";". A member ends at ">"
//     even without one, so in "<a@b.example> <c@d.example>" both count.
//   - Several readings of one text all count: a@b@c.example is "a@b"@c.example,
//     a@b and b@c.example; "a@b. example" is a@b.example and a@b.
//   - In an address that holds an encoded-word the decoded text counts as well,
//     although RFC 2047, section 5 forbids it: some readers decode first.
//
// # What is not
//
//   - Display text beside an address. The sender of
//     "Foo@bar.example <a@b.example>" is a@b.example alone: turning mail away
//     for its display text would turn away what mailing lists and ticket
//     systems send. The same holds for quoted strings, encoded-words, comments.
//   - The route of <@route.example:a@b.example> and a group's name.
//
// Text is judged where it is all that a reader has to show: a member of the list
// holds no address outside its quoted strings and encoded-words
// (From: "a@b.example"), or the whole field holds none, and then its comments
// count, too. And text is judged where readers differ on what is text: angle
// brackets with another bracket or a list in them make no display text, and where
// a quote or comment is never closed, a backslash stands outside of both, or a
// quoted string is part of a domain, the field is read once more as if there were
// no such marks.
//
// # Forms
//
// Mail servers complete and rewrite what a field holds in the place of an address:
// Postfix for clients that it takes for its own, OpenSMTPD for all, Exim and
// Sendmail by their rewrite rules. So the following are returned as well, as a Form
// with the addresses that it may become. A Form is a guess: it may turn mail away,
// and must never let it in.
//
//   - user%host and host!user, also in quotes, with comments and space around the
//     "%" and "!";
//   - "@host" and "user@", where the other side is missing or holds no name;
//   - a bare word, with what follows a source route or stands in a group. Which
//     words count is what servers take for an address: in angle brackets all that
//     they hold, in a member without brackets each word (Postfix adds the missing
//     commas; OpenSMTPD takes the last). A quoted string is one word. An
//     encoded-word counts decoded.
//
// Not a Form is what is a name to servers too: text beside angle brackets, even
// empty ones, comments, a group's name, punctuation, and whatever stands on a
// malformed line, at which servers end the header. Words beside an address
// ("Smith, Ann <ann@b.example>") are most likely a name that was split at its comma,
// but servers complete them all the same. They are marked with Beside, so that
// entries that name the word can count, and those of the whole domain do not. So are
// "Yahoo! Mail", "50% off" and "Sales @ Acme" beside an address, and the word in
// "Ann <boss> <ann@b.example>": see [Form].
//
// # Bounds
//
// The work is linear in the size of the section. Senders cuts nothing off;
// SendersUpTo stops at a number of addresses, and at an amount of words, marks and
// encoded-words in proportion to it. Of a local part the first 4096 bytes count, of
// a domain the last 1020, after invisible characters and empty labels have been
// removed, and routes read: no list names more.
package header

import (
	"math"
	"strings"

	"spamgate/blocklist/verdict"
)

// Sender is one address and the field that names it.
type Sender = verdict.HeaderSender

// Result is what a header section says.
type Result struct {
	// Senders are in the order of the section, each pair of field and address
	// once.
	Senders []Sender

	// Forms are what fields hold in the place of addresses, in the order of the
	// section, each once.
	Forms []Form

	// Empty names the fields that were asked for and are there, but hold neither
	// an address nor a form in any of their occurrences, in the order asked.
	Empty []string

	// TooMany says that the section holds more addresses and forms than was
	// asked for, without those that are Beside. Senders and Forms are the first of
	// them.
	TooMany bool

	// MessageID is the first Message-ID field's value without the space
	// around it, for logs: what is not printable ASCII is a "?", and there
	// are at most 200 bytes.
	MessageID string
}

// Senders finds the addresses in the named fields of a header section: the
// lines up to and without the empty line, dot-unstuffed. Names are compared
// without case. Any bytes are taken; see the package comment for how broken
// fields are read.
func Senders(section []byte, fields []string) Result {
	return SendersUpTo(section, fields, math.MaxInt/workPerAddress)
}

// SendersUpTo is Senders for headers that hold so many addresses and forms at most.
// With more than that, or with fields of so many words, marks and lines that they
// must be made to cost, it stops reading, and Result.TooMany is set.
func SendersUpTo(section []byte, fields []string, most int) Result {
	c := collector{fields: fields, states: make([]state, len(fields)), most: most, budget: budget{left: workPerAddress * most}}
	var (
		res   Result
		idSet bool
	)
	for s := (splitter{rest: section}); s.next(); {
		if s.lost && !mayHoldAddress(s.value) {
			continue
		}
		if i := c.lookup(s.name); i >= 0 && !c.full() {
			c.readField(i, unfold(s.value), s.lost)
		}
		if !idSet && isName(s.name, "Message-ID") {
			idSet = true
			res.MessageID = logText(unfold(s.value))
		}
	}
	res.Senders, res.Forms, res.TooMany = c.senders, c.forms, c.full()
	for i, st := range c.states {
		if st == present {
			res.Empty = append(res.Empty, fields[i])
		}
	}
	return res
}

// maxMessageID is the longest MessageID, in bytes.
const maxMessageID = 200

// logText makes a value fit for a log line; see [Result].
func logText(value string) string {
	value = strings.Trim(value, " \t")
	value = value[:min(len(value), maxMessageID)]
	return strings.Clone(strings.Map(func(r rune) rune { // of the value nothing is kept
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, value))
}
