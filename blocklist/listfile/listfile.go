// Package listfile reads and writes list files, in their own format (plain) and in
// those of other programs (see Format). A plain list has one entry a line, with
// comments:
//
//	# a comment line
//	user@example.com         one address
//	@example.com             every address at exactly that domain; so does *@example.com
//	example.com              that domain and every subdomain (with Options.Exact: the domain alone)
//	.example.com             that domain and every subdomain
//	*.example.com            subdomains only
//	user@                    a local part at any domain
//	@[192.0.2.1]             an address literal; @[IPv6:2001:db8::1] likewise
//	<>                       the null sender
//	!user@example.com        an exception to this list's other entries
//	example.net  # reason    a comment after white space: the reason, shown to refused clients
//	example.org  ## note     a private comment
//	example.org  # until=2026-12-31 reason     an entry that expires
//
// In a list with Options.PerRecipient a line has two sides, with white space between: a
// recipient in the forms of an entry, and an entry, which counts for mail to that recipient:
//
//	ann@example.net      news.example      # Ann wants no news
//	ann@example.net      !daily.news.example
//	@example.net         @shop.example     for every recipient at exactly that domain
//
// An expiry is a word of the comment: until= and a time as in RFC 3339
// (until=2026-12-31T18:00:00Z), or a date, at whose end, in UTC, the entry expires. It
// is not part of the reason. An until= without a valid time makes the line invalid,
// since the entry would never expire.
//
// Package sender normalises entries as it normalises senders, so any spelling of an
// address in a list matches any spelling in mail. Files are UTF-8, with or without a
// byte order mark; lines end in LF or CRLF.
//
// A line that is not an entry is reported as a Problem and skipped. Some lines could
// be entries but are probably mistakes, which would never match or match too much.
// They are refused as well:
//
//   - a single label (com) or an ICANN public suffix (co.uk), bare or after a dot or
//     *., since it covers the domains of strangers (see Options.AllowPublicSuffix);
//     @co.uk matches that one domain and is an entry
//   - a * other than in a leading *@ or *., unless the local part is quoted
//   - an IP address without an @ and brackets: a sender is not a client
//   - a domain with one of / | ^ ? ! # = ' ` ~ % $ & { }, which come from URLs, other
//     programs' lists, and comments without white space before them, or with a label of more
//     than 63 bytes: no sender has it
package listfile

import (
	"errors"
	"fmt"
	"strings"

	"spamgate/blocklist/sender"
)

// MaxLine is the longest line that can be an entry, in bytes without its end.
const MaxLine = 4096

// Why a whole file is refused. Entries that were read before the error must not be
// used.
var (
	ErrBinary = errors.New("a NUL byte: this is not a text file (or it is UTF-16; save it as UTF-8)")
	ErrUTF16  = errors.New("the file is UTF-16; save it as UTF-8")
	ErrPacked = errors.New("the file cannot be unpacked")
	ErrTooBig = errors.New("the file is too big")
	ErrSyntax = errors.New("the file is not written in its format")
)

// Options are the properties of a list that change the meaning of its entries.
type Options struct {
	// Allow means that the list is an allow list. An exception is invalid there.
	Allow bool

	// Exact limits a bare domain to that domain alone: example.com is read as
	// @example.com.
	Exact bool

	// AllowPublicSuffix accepts single labels and public suffixes as domains.
	AllowPublicSuffix bool

	// PerRecipient means that each line has two sides: a recipient, written like an
	// entry, and the entry that counts for that recipient. The format is Plain.
	PerRecipient bool

	// Discard means that the action of the list is discard, so that DISCARD in a Postfix
	// table says what the list does.
	Discard bool

	// Format is the format of the file; empty means Plain.
	Format Format

	// Column is the column of a CSV file that holds the entries: its name in the
	// first line, or in the comment before it, or its number from 1. If it is empty,
	// the only column with a name such as domain or email is read, else the first; a
	// note says which.
	//
	// For JSON it is the path to the entries: the names of members with dots between,
	// such as data.domain, where * is any member. Arrays on the way need no name. A
	// string at the end is an entry; of an array each string is one, of an object each
	// name. A single dot is the outermost value. If it is empty, the text is an array
	// of strings, or of objects with only one member that has a usual name, or such
	// objects one after the other (NDJSON).
	Column string

	// MaxBytes is the largest size of the unpacked file; 0 means no limit.
	MaxBytes int64

	// Now is the current time for expiries, in seconds since 1970; 0 means the
	// system's.
	Now int64
}

// Entry is one valid entry.
type Entry struct {
	// Key is the key of the entry in an index: a text that sender.Walk yields for
	// every address that the entry matches. It does not contain the ! of an
	// exception.
	Key  string
	Kind sender.Kind

	// For is the recipient's side in a list with Options.PerRecipient, as a key too. It
	// is empty in other lists.
	For string

	// Exception means that the entry began with a !.
	Exception bool

	// Defer means that the entry asks for a temporary refusal if the action of its
	// list is reject.
	Defer bool

	// Until is the time of expiry, in seconds since 1970; 0 means never.
	Until int64

	// Line is the line number, from 1; 0 from ParseEntry.
	Line int

	// Reason is the comment before ##, Note the private one after it. Both are
	// valid UTF-8 without control characters, otherwise as written.
	Reason, Note string
}

// Problem is a line that is not a valid entry. It is an error too.
type Problem struct {
	// Line is the line number, from 1; 0 from ParseEntry.
	Line int

	// Text is the text without its comment, made printable and cut to at most
	// 120 bytes.
	Text string

	// What says what is wrong. Hint, if not empty, says what to write instead.
	What, Hint string

	// Unsupported means that the line has a meaning in its format, but none that
	// can be looked up here: a regular expression, a range of addresses. Or its
	// program ignores it.
	Unsupported bool

	// TooLong means that the line is longer than MaxLine.
	TooLong bool
}

// Error returns String.
func (p Problem) Error() string { return p.String() }

// String returns the line number, if there is one, the text, what is wrong with it,
// and the hint.
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

// Result has the counts of a file.
type Result struct {
	Entries     int // valid entries, repeated ones each time
	Invalid     int // lines reported as a Problem, without unsupported ones
	Unsupported int // lines reported as an unsupported Problem
	Expired     int // entries omitted because they have expired
	Unread      int // exceptions among the unsupported lines: what they may let through is not blocked
	Skipped     int // lines that are not about senders, except those that every file of the format has
	Lines       int // all lines, empty ones and comments included

	// Format is the format of the file; with Auto the one that was recognised.
	// Packed is "gzip" or "zstd" if the file was packed.
	Format Format
	Packed string

	// Notes says what was skipped on purpose, and what looks risky.
	Notes []string
}
