package listfile

import (
	"fmt"
	"slices"
	"strings"
)

// Format is a list format. A name means what it means to the program of the format;
// the comment of each format says which entry that is. "The domain alone" is the
// entry @example.com, "subdomains alone" *.example.com, "wide" example.com: the domain
// with its subdomains, or in an exact list (see Options.Exact) the domain alone.
//
// A line that lets senders through is an exception in a block list and an entry in an
// allow list. A line that blocks is invalid in an allow list.
//
// Lines that cannot be looked up here (client addresses, regular expressions, rules
// for parts of pages) are unsupported Problems. If such a line keeps its program from
// blocking what a line for a domain above blocks (HOLD in a Postfix table), it is also
// an exception in a block list. Lines that do not concern senders (settings, the DNS
// zone's own records) are skipped, with a note in the Result.
//
// The most specific entry or exception counts, in every format but that of ad blockers.
// SpamAssassin differs: there an exception for a domain also cancels rules for an address
// in it. Here such a rule needs its own exception.
type Format string

// The formats.
const (
	// Auto is the format that Detect recognises.
	Auto Format = "auto"

	// Plain is described in the package's comment. An empty Format is Plain.
	Plain Format = "plain"

	// Hosts is a hosts file, hosts(5): an address, then names. A name is the
	// domain alone, since hosts files have no subdomains. Only names with the
	// address 0.0.0.0, 127.0.0.1, :: or ::1 are blocked; one with another address
	// (such as Debian's 127.0.1.1 for the host itself) is unsupported. localhost
	// and the like are skipped, also the names beside localhost on the line of a
	// loopback address, which are the host's own. The comment is the reason, and
	// may have an until=.
	//
	//	0.0.0.0 example.com www.example.com # reason
	Hosts Format = "hosts"

	// PostfixAccess is the source of a Postfix table, access(5): a pattern and an
	// action, which may continue on lines that begin with white space.
	//
	//	user@example.com  REJECT text     that address; so do 5NN text
	//	user@example.com  DEFER text      the same, for the time being; so do 4NN text, DEFER_IF_PERMIT
	//	example.com       REJECT          wide, as with smtpd_access_maps in parent_domain_matches_subdomains
	//	.example.com      REJECT          subdomains alone
	//	user@             REJECT          a local part at any domain
	//	[192.0.2.1]       REJECT          the address literal
	//	<>                REJECT          the null sender
	//	user@example.com  OK              let through; so do RELAY and a number
	//	user@example.com  DUNNO           let through by this list (not in an allow list)
	//	user@example.com  DISCARD         that address, in a list with Options.Discard
	//
	// A leading @ or * means nothing to Postfix and is invalid; so is a code
	// without a text, which Postfix reads as OK. Other actions (HOLD, FILTER,
	// DEFER_IF_REJECT, restriction classes) are unsupported and, except for
	// DISCARD, exceptions, since Postfix stops there. The text is the reason,
	// without an enhanced status code. If main.cf removes smtpd_access_maps from
	// parent_domain_matches_subdomains, the list should be an exact one; else Postfix
	// never looks up .example.com. The first line of a key counts, as in a table that
	// postmap(1) made: a later one with another verdict is unsupported.
	PostfixAccess Format = "postfix"

	// Exim is a file for lsearch: a key, a colon or white space, and data. A line that begins
	// with white space continues the one before; the first line of a key counts.
	//
	//	user@example.com: text   that address
	//	*@example.com: text      the domain alone; so does example.com
	//	*.example.com: text      subdomains alone, as with wildlsearch
	//
	// What the data means depends on the ACL. Here accept, allow, ok, pass, permit, whitelist,
	// no, false and 0 let through; defer is for the time being; discard and blackhole are
	// entries in a list with Options.Discard; with anything else the line blocks, and what is
	// not a usual word for that is the reason.
	Exim Format = "exim"

	// Sendmail is the source of Sendmail's access database: a key and an action, as in a
	// Postfix table but for these. The first line of a key counts.
	//
	//	From:example.com  REJECT                    wide; a key without From: is read likewise
	//	From:x@example.com  ERROR:5.7.1:550 text    that address; so do ERROR:"550 text", 550 alone, and any other text
	//
	// Lines with another word than From: (To:, Connect:) and SKIP are unsupported; QUARANTINE:
	// is an exception as well.
	// In Sendmail user@ counts before domains, and From:example.com before example.com; here
	// domains do, and the first of the two.
	Sendmail Format = "sendmail"

	// RBLDNSD is a dnset of rbldnsd(8).
	//
	//	example.com     the domain alone
	//	.example.com    the domain with its subdomains, in an exact list too
	//	*.example.com   subdomains alone
	//	!example.com    an exception; so with .example.com and *.example.com
	//
	// The reason is the entry's own text (":127.0.0.2:text" or "text"), else that
	// of the last line that starts with a colon, with $ and $1 replaced. The
	// address of the answer is ignored. A file whose $TIMESTAMP is in the future is
	// refused. The earliest expiry of a $TIMESTAMP is that of the entries after it;
	// in rbldnsd it is that of the whole file. So one after the first entry is
	// invalid, and if its time is over, the file is refused. Other directives are
	// ignored. A $DATASET of another type than dnset and dnhash is skipped.
	RBLDNSD Format = "rbldnsd"

	// SpamAssassin is a configuration, Mail::SpamAssassin::Conf. Its settings
	// blocklist_from, welcomelist_from (let through) and unblocklist_from (an
	// exception; unsupported in an allow list) are read, also under their older
	// names blacklist_from, whitelist_from. In SpamAssassin unblocklist_from removes the
	// same pattern alone, and def_welcomelist_from does not outweigh a blocklist_from.
	// Here they are exceptions like any other. These patterns are supported:
	//
	//	user@example.com     that address
	//	*@example.com        the domain alone
	//	*.example.com        subdomains alone; so does *@*.example.com
	//	user@*               a local part at any domain
	//
	// A name without an @ is invalid: SpamAssassin never matches it. Lines between
	// if and endif are read, whatever the condition. The comment is the reason,
	// and may have an until=.
	SpamAssassin Format = "spamassassin"

	// Rspamd is a map of rspamd: a key, and perhaps a value. A text is the reason;
	// a score is ignored, but one below 0 favours the sender and makes an
	// exception, or in an allow list an entry. A key with a flag of the module
	// whitelist (bl:1.0, wl:1.0, both:1.0) is unsupported: the flag depends on
	// authentication. Comments are as in a plain list.
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
	//	||example.com      the same; so does ||example.com|
	//	||*.example.com^   subdomains alone
	//	|example.com^      the domain alone; so does |example.com|
	//	example.com        the domain alone, as DNS filters have it; lines of hosts files too
	//	@@||example.com^   let through with all names below it, whatever rules are for those
	//	@@example.com      the same
	//	@@|example.com^    let through, the domain alone
	//
	//	||example.com^$badfilter   an exception; the rule that it cancels may stand anywhere
	//
	// A rule may have options that do not limit it ($important, $all, $document).
	// With any other option it is unsupported, as are rules that hide parts of
	// pages. An exception that cannot be read also cancels the rules for its domain and
	// those above it, since it is not known what it lets through: with a * in its name those
	// for the part after the *. It is counted in Result.Unread. Exceptions count for the
	// rules of their own file. Two options mean less than in an ad blocker: $important does not outrank
	// an exception, and $badfilter also cancels wider rules for its domain. A
	// $badfilter for a rule that lets through, or in an allow list, is unsupported.
	Adblock Format = "adblock"

	// Dnsmasq is a configuration of dnsmasq. These settings are read:
	//
	//	address=/example.com/          wide; so do address=/example.com/0.0.0.0 (or another such address) and …/#
	//	local=/example.com/            wide; so does server=/example.com/
	//	address=/*.example.com/        subdomains alone
	//	address=/.example.com/         wide: the dot changes nothing
	//	address=/a.example/b.example/  several names
	//	server=/example.com/#          let through
	//
	// A name with its own server or address is unsupported, and an exception:
	// dnsmasq does not block it below a blocked name. With the server 127.0.0.1, 0.0.0.0,
	// ::1 or :: it is only unsupported, since some lists block with that. The comment is the reason,
	// and may have an until=.
	Dnsmasq Format = "dnsmasq"

	// RPZ is a response policy zone as a master file, with $ORIGIN, $TTL,
	// parentheses, and names relative to the zone.
	//
	//	example.com    CNAME .               the domain alone; so do *. and rpz-drop., and A and AAAA of 0.0.0.0, 127.0.0.1, :: or ::1
	//	*.example.com  CNAME .               subdomains alone; directly after the line above the two are one wide entry
	//	example.com    CNAME rpz-passthru.   let through, with its subdomains; in an allow list the domain alone
	//
	// In a resolver a name of the zone, also one that only has names below it, ends the
	// wildcard above it (RFC 4592, section 3.3.1): beside "*.example.com CNAME ." the
	// line "a.b.example.com CNAME ." keeps x.b.example.com from being blocked. Here
	// only names that let through do so.
	//
	// Other answers, and triggers by address or name server, are unsupported;
	// rpz-tcp-only., which does not block, is also an exception. The comment is
	// the reason, and may have an until=.
	RPZ Format = "rpz"

	// URLs is a list of URLs. The host counts, alone; user and port are ignored. A URL
	// with a path, a query or a fragment is about a page, whose host may be shared: it
	// is unsupported, and so is one whose host is an IP address. The comment, after
	// white space and a #, is the reason, and may have an until=.
	//
	//	https://example.com/          the domain alone; so do https://example.com:8443, example.com
	//	https://example.com/login     unsupported
	//	HTTPS://user@example.com/     the domain alone
	URLs Format = "urls"

	// CSV is a table of comma-separated values (RFC 4180; semicolons and tabs are
	// accepted). Options.Column says which column is read. A cell is an entry of a
	// plain list, without a comment: example.com is wide. Or it is a URL, as in a
	// list of URLs.
	CSV Format = "csv"

	// JSON is an array of strings, or objects; Options.Column says where the strings
	// are. Each is read as a cell of CSV.
	JSON Format = "json"
)

// Formats lists all formats, Auto first.
var Formats = []Format{Auto, Plain, Hosts, PostfixAccess, Exim, Sendmail, RBLDNSD, SpamAssassin, Rspamd, Adblock, Dnsmasq, RPZ, URLs, CSV, JSON}

// kinds describe a file of each format.
var kinds = map[Format]string{
	Plain: "a plain list", Hosts: "a hosts file", PostfixAccess: "a Postfix access table", Exim: "a file for Exim's lsearch", Sendmail: "a Sendmail access table", RBLDNSD: "an rbldnsd dnset",
	SpamAssassin: "a SpamAssassin configuration", Rspamd: "an rspamd map", Adblock: "an ad blocker's list",
	Dnsmasq: "a dnsmasq configuration", RPZ: "a response policy zone", URLs: "a list of URLs", CSV: "a CSV file", JSON: "JSON",
}

// UnknownFormat is the error for a format that is not one of Formats.
type UnknownFormat Format

func (f UnknownFormat) Error() string {
	return fmt.Sprintf("unknown format %q; use one of %s", string(f), formatNames(Formats))
}

func formatNames(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// HasColumn reports whether [Options.Column] may apply: the format is CSV, JSON or Auto.
func (f Format) HasColumn() bool { return f == CSV || f == JSON || f == Auto }

// Lines reports whether each line of a file has its meaning alone, so that some lines of it can
// be read as a list.
func (f Format) Lines() bool {
	g, err := grammarOf(f)
	return err == nil && g.each
}

// Formats that are recognised and not read.
const (
	ruleSet   Format = "a rule set of a proxy (Clash, Surge)"
	unbound   Format = "a configuration of unbound"
	namedConf Format = "a configuration of BIND"
)

// foreignFormats are those.
var foreignFormats = []Format{ruleSet, unbound, namedConf}

// Known reports whether f is one of Formats or empty.
func (f Format) Known() bool { return f == "" || slices.Contains(Formats, f) }
