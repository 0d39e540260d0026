// Package header finds the senders in a message's header section.
//
// The gate judges whom a message claims to be from. So an address counts if some mail
// reader may show it as the sender or reply to it, whatever the grammar says. Senders
// reads every field with a given name and every address in a field. If mail readers
// disagree about the address, all of their readings count. A broken part of a field does
// not stop it.
//
// # What is an address
//
//   - An addr-spec alone or in angle brackets, in groups, after routes, with comments
//     and white space inside (RFC 5322, sections 3.4 and 4.4). Separators are "," and,
//     as in Outlook, ";". A member also ends at ">", so both count in
//     "<a@b.example> <c@d.example>".
//   - All readings of one text: a@b@c.example is "a@b"@c.example, a@b and
//     b@c.example; "a@b. example" is a@b.example and a@b.
//   - The decoded text of an encoded-word in an address, besides the text as written.
//     RFC 2047, section 5 forbids it, but some readers decode first.
//
// # What is not an address
//
//   - A quoted string, an encoded-word or a comment beside an address: the sender of
//     "foo@bar.example" <a@b.example> is a@b.example only. Mailing lists and ticket
//     systems send such display text.
//   - The route of <@route.example:a@b.example>, and a group's name.
//
// Text does count if a reader has nothing else to show: a member of the list has no
// address outside its quoted strings and encoded-words (From: "a@b.example"). If the whole
// field has none, its comments count too. Text also counts if readers disagree about what
// is text. That is so for a member whose angle brackets contain another bracket or a list.
// If a quote or comment is never closed, a backslash is outside of both, or a quoted
// string is part of a domain, Senders reads the field a second time without these marks.
//
// # Guesses
//
// Some readers see an address where most see none, or another one. What they see is returned
// as a Form, which may refuse mail and must never let it in:
//
//   - an address in a phrase without quotes: Foo@bar.example <a@b.example>. Dovecot's
//     ENVELOPE and Python's parser take it for the sender;
//   - a word after a source route, at each domain of the route: <@b.example:a>; and the
//     route's domain alone, if the brackets have another one in them, or no address;
//   - controls, spaces that are not ASCII, U+FFFD and bytes that are not UTF-8, read as
//     nothing and as a space, besides what is written;
//   - encoded-words in charsets that are not supersets of ASCII, read as ASCII; those in
//     unknown ones, read as EBCDIC, UTF-7 and without the eighth bit;
//   - an address in the comments of a member that has no other, as nodemailer reads it, and
//     in the encoded-words of a member without brackets, as Python does;
//   - what follows a fold in a quoted string, a comment or an address literal, where Python
//     ends them; and all of a value after one of the same name that is malformed;
//   - a domain with space in it, which Python drops: a@b.exam ple;
//   - what Sendmail leaves of a member of more than 190 bytes, which it cuts within a
//     domain, or adds to brackets that are never closed.
//
// # Forms
//
// Mail servers complete and rewrite what a field has instead of an address: Postfix for
// its own clients, OpenSMTPD for all, Exim and Sendmail by their rewrite rules. So Senders
// also returns the following, each as a Form with the addresses that it may become. A Form
// is a guess: it may refuse mail, and must never let it in.
//
//   - user%host and host!user, also in quotes, with comments and space around the
//     "%" and "!";
//   - "@host" and "user@", if the other side is missing or has no name;
//   - a bare word, also after a source route or in a group. Servers decide which words
//     count: in angle brackets their whole content, in a member without brackets each
//     word (Postfix adds the missing commas; OpenSMTPD takes the last word). A quoted
//     string is one word. An encoded-word counts decoded.
//
// Not a Form is what servers take for a name too: text beside angle brackets, even empty
// ones, comments, a group's name, punctuation, and anything on a malformed line, where
// servers end the header. Words beside an address ("Smith, Ann <ann@b.example>") are most
// likely a name that was split at its comma, but servers complete them too. They are marked
// with Beside: entries that name the word can count, entries for the whole domain do not.
// The same holds for "Yahoo! Mail", "50% off" and "Sales @ Acme" beside an address, and
// for the word in "Ann <boss> <ann@b.example>": see [Form].
//
// # Bounds
//
// The work is linear in the size of the section; a value that readers read in different ways
// is read up to seven times. Senders has no other bound; SendersUpTo
// stops at a number of addresses, and at a proportional number of words, marks and
// encoded-words. The first 4096 bytes of a local part and the last 1020 bytes of a domain
// count, after routes were read and invisible characters and empty labels removed: no list
// has longer ones.
package header

import (
	"math"
	"slices"
	"strings"

	"spamgate/blocklist/verdict"
)

// Sender is one address and the field that names it.
type Sender = verdict.HeaderSender

// Result is what Senders found in a header section.
type Result struct {
	// Senders are in the order of the section, each pair of field and address
	// once.
	Senders []Sender

	// Forms are what fields have instead of addresses, in the order of the section,
	// each once.
	Forms []Form

	// Unreadable are the encoded-words that could not be decoded, as written, in values
	// that have no address in any reading. The first of each value is there.
	Unreadable []Sender

	// Empty names the fields that exist, but have neither an address nor a form in
	// any of their occurrences, in the caller's order.
	Empty []string

	// TooMany says that the section has more addresses and forms than the caller
	// allowed, not counting forms that are Beside. Senders and Forms have the first
	// of them.
	TooMany bool

	// LongestField and LongestLine are the first of the longest among the named fields,
	// and among their lines. Both are zero if there is none.
	LongestField, LongestLine Size

	// MessageID is the value of the first Message-ID field, for logs: without the
	// space around it, with "?" for what is not printable ASCII, and at most 200
	// bytes.
	MessageID string
}

// Senders finds the addresses in the named fields of a header section: the lines before
// the empty line, without dot-stuffing. The case of names does not matter. The section may
// contain any bytes; see the package comment for how broken fields are read.
func Senders(section []byte, fields []string) Result {
	return SendersUpTo(section, fields, math.MaxInt/workPerAddress)
}

// SendersUpTo is Senders for at most so many addresses and forms. If there are more, or
// so many words, marks and lines that reading them costs too much, it stops and sets
// Result.TooMany.
func SendersUpTo(section []byte, fields []string, most int) Result {
	c := collector{fields: fields, states: make([]fieldState, len(fields)), most: most, budget: budget{left: workPerAddress * most}}
	var res Result
	var longest sizes
	idSet := false
	for s := (splitter{rest: section}); s.next(); {
		isField := func(field string) bool { return isName(s.name, field) }
		i := slices.IndexFunc(fields, isField)
		if i >= 0 {
			longest.add(fields[i], &s)
		}
		if s.lost && !mayHoldAddress(string(s.value)) {
			continue
		}
		if i >= 0 && !c.full() {
			c.readField(i, s.value, s.lost)
		}
		if !idSet && isName(s.name, "Message-ID") {
			idSet = true
			res.MessageID = logText(unfold(s.value))
		}
	}
	res.Senders, res.Forms, res.Unreadable, res.TooMany = c.senders, c.forms, c.unreadable, c.full()
	res.LongestField, res.LongestLine = longest.field, longest.line
	for i, st := range c.states {
		if st == present {
			res.Empty = append(res.Empty, fields[i])
		}
	}
	return res
}

// maxMessageID is the longest MessageID, in bytes.
const maxMessageID = 200

// logText returns a Message-ID for the log; see [Result].
func logText(value string) string {
	value = strings.Trim(value, " \t")
	value = value[:min(len(value), maxMessageID)]
	return strings.Clone(strings.Map(func(r rune) rune { // Clone: the caller must not keep the section in memory
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, value))
}
