// Package listfile reads list files, in their own format and in those of other
// programs, and writes them. See Format for the others. A plain list has one
// entry a line, with comments:
//
//	# a line of comment
//	user@example.com         one address
//	@example.com             every address at exactly that domain; so does *@example.com
//	example.com              that domain and every subdomain (with Options.Exact: the domain alone)
//	.example.com             that domain and every subdomain
//	*.example.com            subdomains only
//	user@                    a local part at any domain
//	@[192.0.2.1]             an address literal; @[IPv6:2001:db8::1] likewise
//	<>                       the null sender
//	!user@example.com        an exception to this list's other entries
//	example.net  # reason    a comment after white space: the reason, shown to who is refused
//	example.org  ## note     after ## it is private
//	example.org  # until=2026-12-31 reason     an entry that expires
//
// An expiry is a word of the comment, until= and a time as RFC 3339 writes it
// (until=2026-12-31T18:00:00Z) or a date, through whose end, in UTC, the entry
// counts. It is not part of the reason. An until= that is no time makes the line
// invalid: the entry would stay for ever, unnoticed.
//
// Entries are normalised by the code that normalises senders (package sender),
// so any spelling of an address in a list meets any spelling in mail. Files are
// UTF-8, with or without a byte order mark, lines end in LF or CRLF.
//
// What cannot be an entry is reported as a Problem and skipped. Some things
// could be read as an entry but are a mistake more likely than not, and would
// sit in the list without ever matching, or match the world; they are refused
// as well:
//
//   - a single label (com) or an ICANN public suffix (co.uk), bare or with a
//     dot or *. in front, since it covers the domains of strangers (see
//     Options.AllowPublicSuffix); @co.uk matches that one domain and is an entry
//   - a * other than in *@ and *. at the start, unless the local part is quoted
//   - an IP address without an @ and brackets: a sender is no client
//   - a domain with one of / | ^ ? ! # = ' `, which come from URLs, other
//     programs' lists, and comments without white space in front
package listfile

import (
	"errors"
	"fmt"
	"strings"

	"spamgate/blocklist/sender"
)

// MaxLine is the longest line that can be an entry, in bytes without its end.
const MaxLine = 4096

// Whole files that are refused. What Read has yielded of one before it noticed
// is not to be used.
var (
	ErrBinary = errors.New("a NUL byte: this is no text file (or UTF-16; save it as UTF-8)")
	ErrUTF16  = errors.New("the file is UTF-16; save it as UTF-8")
	ErrPacked = errors.New("the file cannot be unpacked")
	ErrTooBig = errors.New("the file is too big")
	ErrSyntax = errors.New("the file is not written in its format")
)

// Options are the properties of a list that change how its entries read.
type Options struct {
	// Allow says that it is an allow list, where an exception is invalid: it
	// would have to mean "block".
	Allow bool

	// Exact has a bare domain stand for that domain alone: example.com is
	// read as @example.com.
	Exact bool

	// AllowPublicSuffix accepts single labels and public suffixes as domains.
	AllowPublicSuffix bool

	// Format is how the file is written; empty is Plain.
	Format Format

	// Column is the column of a CSV file that holds the entries: its name in
	// the first line, or its number from 1. Empty is the only one with a name
	// such as domain or email, else the first; a note says which it is.
	Column string

	// MaxBytes bounds the file once it is unpacked; 0 does not.
	MaxBytes int64

	// Now is the time by which entries have expired, in seconds since 1970; 0
	// is the clock's.
	Now int64
}

// Entry is one valid entry.
type Entry struct {
	// Key is what the entry is filed under: a text that sender.Walk yields for
	// every address that the entry matches. The ! of an exception is not part
	// of it.
	Key  string
	Kind sender.Kind

	// Exception says that the entry had a ! in front.
	Exception bool

	// Defer says that the entry asks to be refused for the time being, where
	// its list says reject.
	Defer bool

	// Until is when the entry stops to count, in seconds since 1970; 0 never.
	Until int64

	// Line is the line number, from 1; 0 from ParseEntry.
	Line int

	// Reason is the comment up to ##, Note what follows that and is private.
	// Both are valid UTF-8 without control characters, otherwise as written.
	Reason, Note string
}

// Problem is a line that is not a valid entry. It is an error too.
type Problem struct {
	// Line is the line number, from 1; 0 from ParseEntry.
	Line int

	// Text is the offending text, without its comment, made printable and cut
	// to at most 120 bytes.
	Text string

	// What says what is wrong, Hint what to write instead; there is not
	// always a hint.
	What, Hint string

	// Unsupported says that the line means something in its format, but nothing
	// that can be looked up here: a regular expression, a range of addresses.
	Unsupported bool

	// TooLong says that the line is longer than MaxLine.
	TooLong bool
}

// Error returns String.
func (p Problem) Error() string { return p.String() }

// String puts the problem on one line: the line number if there is one, the
// text, what is wrong with it, and the hint.
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	fmt.Fprintf(&b, "%q: %s", p.Text, p.What)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// Result counts what Read saw.
type Result struct {
	Entries     int // valid entries, repeated ones each time
	Invalid     int // lines reported as a Problem, but for unsupported ones
	Unsupported int // lines reported as an unsupported Problem
	Expired     int // entries left out since their time is over
	Lines       int // all lines, empty ones and comments included

	// Format is how the file was read; with Auto what it was recognised as.
	// Packed is "gzip" or "zstd" where it was.
	Format Format
	Packed string

	// Notes says what was passed over on purpose, a sentence each.
	Notes []string
}
