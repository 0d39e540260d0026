package listfile

import (
	"fmt"
	"slices"
	"strings"
)

// Format is a way to write a list. In each a name means what it means to the
// program that the format comes from; what that is in terms of entries stands
// with each. "The domain alone" is the entry @example.com, "subdomains alone"
// *.example.com, "wide" example.com: the domain with its subdomains, or in an
// exact list (see Options.Exact) the domain alone.
//
// Where a format says itself what is to be let through, that is an exception in
// a block list. In an allow list that is an entry, and what is to be blocked is
// an invalid line.
//
// Lines that mean something in their format which nothing here can look up
// (client addresses, regular expressions, rules for parts of pages) are
// unsupported Problems. Where such a line has its program not block what a line
// for a domain above blocks (HOLD in a Postfix table), it is an exception of a
// block list besides. What is no matter of senders at all (settings, the DNS
// zone's own records) is passed over, with a note in the Result.
//
// Of entries and exceptions the most specific counts, in every format, as it
// does in a plain list. Two programs do otherwise: in an ad blocker and in
// SpamAssassin an exception for a domain also holds against a rule for a name
// below it or an address in it. Here that rule needs an exception of its own.
type Format string

// The formats.
const (
	// Auto is whatever the file is recognised as; see Detect.
	Auto Format = "auto"

	// Plain is described in the package's comment. An empty Format is Plain.
	Plain Format = "plain"

	// Hosts is a hosts file, hosts(5): an address, then names. A name is the
	// domain alone, since a hosts file knows no subdomains. Only names with the
	// address 0.0.0.0, 127.0.0.1, :: or ::1 are blocked; one with another address
	// (127.0.1.1 is Debian's for the host itself) is unsupported. localhost and
	// its like are skipped, on the line of a loopback address the names beside
	// localhost too: they are the host's own. The comment is the reason, and may
	// have an until=.
	//
	//	0.0.0.0 example.com www.example.com # reason
	Hosts Format = "hosts"

	// PostfixAccess is a table of Postfix, access(5), before postmap: a pattern,
	// an action, and on the lines that follow with white space in front, more of
	// the action.
	//
	//	user@example.com  REJECT text     that address; so do 5NN text
	//	user@example.com  DEFER text      the same, for the time being; so do 4NN text, DEFER_IF_PERMIT
	//	example.com       REJECT          wide, as with smtpd_access_maps in parent_domain_matches_subdomains
	//	.example.com      REJECT          subdomains alone
	//	user@             REJECT          a local part at any domain
	//	<>                REJECT          the null sender
	//	user@example.com  OK              let through; so do RELAY and a number
	//	user@example.com  DUNNO           let through by this list (not in an allow list)
	//
	// A leading @ or * means nothing to Postfix and is invalid; so is a code
	// without a text, which Postfix reads as OK. Other actions (HOLD, FILTER,
	// DEFER_IF_REJECT, restriction classes) are unsupported, and but for DISCARD
	// exceptions: Postfix looks no further. The text is the reason, without an
	// enhanced status code in front. Where main.cf takes smtpd_access_maps out of
	// parent_domain_matches_subdomains, the list is to be an exact one.
	PostfixAccess Format = "postfix"

	// RBLDNSD is a dnset of rbldnsd(8).
	//
	//	example.com     the domain alone
	//	.example.com    the domain with its subdomains, in an exact list too
	//	*.example.com   subdomains alone
	//	!example.com    an exception; so with .example.com and *.example.com
	//
	// The reason is the entry's own text (":127.0.0.2:text" or "text"), else that
	// of the last line that starts with a colon, with $ and $1 filled in; what
	// addresses are answered does not matter. $TIMESTAMP gives entries behind it
	// their expiry, and refuses the file if it is of the future. Other directives
	// are ignored; of the sets that a $DATASET begins, those of another type than
	// dnset and dnhash are skipped.
	RBLDNSD Format = "rbldnsd"

	// SpamAssassin is a configuration, Mail::SpamAssassin::Conf, of which
	// blocklist_from, welcomelist_from (let through) and unblocklist_from (an
	// exception; nothing in an allow list) are read, with their older names
	// blacklist_from, whitelist_from. Of the patterns these can be expressed:
	//
	//	user@example.com     that address
	//	*@example.com        the domain alone
	//	*.example.com        subdomains alone; so does *@*.example.com
	//	user@*               a local part at any domain
	//
	// A name without an @ is invalid: SpamAssassin never finds it. What stands
	// between if and endif is read, whatever the condition. The comment is the
	// reason, and may have an until=.
	SpamAssassin Format = "spamassassin"

	// Rspamd is a map of rspamd: a key, and perhaps a value, a text being the
	// reason and a score being dropped; a score below 0 speaks for the sender and
	// makes an exception, in an allow list an entry. A key with a flag of the module
	// whitelist (bl:1.0, wl:1.0, both:1.0) is unsupported: that asks who really sent
	// the message. Comments are as in a plain list.
	//
	//	user@example.com   that address
	//	example.com        the domain alone, as maps are looked up; so do @example.com, *@example.com
	//	.example.com       the domain with its subdomains, in an exact list too
	//	*.example.com      subdomains alone (in a glob map)
	//	user@, user@*      a local part at any domain
	Rspamd Format = "rspamd"

	// Adblock is a list for ad blockers and DNS filters.
	//
	//	||example.com^     wide
	//	||*.example.com^   subdomains alone
	//	@@||example.com^   let through, and so is the domain alone
	//	example.com        the domain alone, as DNS filters have it; lines of hosts files too
	//
	// Options that leave a rule one for all of the domain ($important, $all,
	// $document) are fine; a rule with any other is unsupported, and so is what
	// hides parts of pages.
	Adblock Format = "adblock"

	// Dnsmasq is a configuration of dnsmasq, of which these are read:
	//
	//	address=/example.com/          wide; so do address=/example.com/0.0.0.0 (or another such address) and …/#
	//	local=/example.com/            wide; so does server=/example.com/
	//	address=/*.example.com/        subdomains alone
	//	address=/.example.com/         wide: the dot changes nothing
	//	address=/a.example/b.example/  several names
	//	server=/example.com/#          let through
	//
	// A name with a server or an address of its own is unsupported, and an
	// exception: dnsmasq does not block it below a name that it blocks. The
	// comment is the reason, and may have an until=.
	Dnsmasq Format = "dnsmasq"

	// RPZ is a response policy zone as a master file, with $ORIGIN, $TTL,
	// parentheses, and names relative to the zone.
	//
	//	example.com    CNAME .               the domain alone; so do *. and rpz-drop., and A and AAAA of 0.0.0.0, 127.0.0.1, :: or ::1
	//	*.example.com  CNAME .               subdomains alone; right behind the line above the two are one wide entry
	//	example.com    CNAME rpz-passthru.   let through
	//
	// Other answers, and triggers by address or name server, are unsupported;
	// rpz-tcp-only., which lets through in the end, is an exception as well. The
	// comment is the reason, and may have an until=.
	RPZ Format = "rpz"

	// CSV is a table of comma-separated values (RFC 4180; semicolons and
	// tabulators do as well), of which Options.Column is read. A cell is an entry
	// as in a plain list, without a comment: example.com is wide.
	CSV Format = "csv"

	// JSON is an array of strings, each an entry as in a plain list, without a
	// comment: example.com is wide.
	JSON Format = "json"
)

// Formats are all of them, Auto first.
var Formats = []Format{Auto, Plain, Hosts, PostfixAccess, RBLDNSD, SpamAssassin, Rspamd, Adblock, Dnsmasq, RPZ, CSV, JSON}

// kinds are what files of the formats are called.
var kinds = map[Format]string{
	Plain: "a plain list", Hosts: "a hosts file", PostfixAccess: "a Postfix access table", RBLDNSD: "an rbldnsd dnset",
	SpamAssassin: "a SpamAssassin configuration", Rspamd: "an rspamd map", Adblock: "an ad blocker's list",
	Dnsmasq: "a dnsmasq configuration", RPZ: "a response policy zone", CSV: "a CSV file", JSON: "a JSON array",
}

// UnknownFormat is the error for a format that is none of Formats.
type UnknownFormat Format

func (f UnknownFormat) Error() string {
	return fmt.Sprintf("unknown format %q; write one of %s", string(f), formatNames(Formats))
}

func formatNames(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Known reports whether f is one of Formats, or empty.
func (f Format) Known() bool { return f == "" || slices.Contains(Formats, f) }
