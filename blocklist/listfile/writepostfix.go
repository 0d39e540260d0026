package listfile

import (
	"errors"
	"strings"

	"golang.org/x/net/idna"

	"spamgate/blocklist/sender"
)

var (
	errQuotes     = errors.New("its local part needs quotes")
	errLongKey    = errors.New("it is too long for a table")
	errSubdomains = errors.New("a table tells a domain from its subdomains only if smtpd_access_maps is not in parent_domain_matches_subdomains")
)

// maxKey is the length of a key in a table. Postfix refuses a whole lmdb table with a
// key of more than 511 bytes.
const maxKey = 500

func (o WriteOptions) postfixForm() form {
	f := form{
		start:   "# An access(5) table, for check_sender_access. Needs recipient_delimiter = +\n",
		carries: carriesTable,
		entry:   o.tableEntry,
	}
	if o.Allow {
		f.start += "# OK ends the checks: use it in smtpd_sender_restrictions only.\n"
	}
	if o.DotSubdomains {
		f.start += "# Needs smtpd_access_maps taken out of parent_domain_matches_subdomains.\n"
		f.domain = o.dotText
		return f
	}
	f.domain, f.fits = o.tableText, fitsTable
	return f
}

// carriesTable returns an error for an entry whose key a table cannot have.
func carriesTable(e Entry) error {
	switch {
	case strings.ContainsAny(e.Key, "\" \t"):
		return errQuotes
	case e.Key[0] == '#' || e.Key[0] == '/':
		return errReadsElse
	case len(e.Key) > maxKey:
		return errLongKey
	case e.Until != 0 && !e.Exception:
		return errNoUntil
	}
	return nil
}

// tableEntry returns the lines of an entry that is not for a domain.
func (o WriteOptions) tableEntry(e Entry) string {
	text := o.tableLine(e.Key, e)
	if pos := strings.LastIndexByte(e.Key, '@') + 1; pos > 0 && pos < len(e.Key) {
		for _, name := range spellings(e.Key[pos:])[1:] {
			text += o.tableLine(e.Key[:pos]+name, e)
		}
	}
	return text
}

// spellings returns a domain, and if it is an international one its other form: Postfix
// looks up what the client wrote.
func spellings(name string) []string {
	if strings.Contains(name, "xn--") {
		u, err := idna.Punycode.ToUnicode(name)
		if err == nil && u != name && !strings.ContainsAny(u, " \t") {
			if back, err := sender.NormalizeDomain(u); err == nil && back == name {
				return []string{name, u}
			}
		}
	}
	return []string{name}
}

// tableLine returns a line of a table.
func (o WriteOptions) tableLine(pattern string, e Entry) string {
	action := o.Action
	switch {
	case e.Exception:
		return pattern + "\tDUNNO\n"
	case o.Allow:
		return pattern + "\tOK\n"
	case action == "":
		action = "REJECT"
	}
	if e.Defer && action == "REJECT" {
		action = "DEFER"
	}
	return strings.TrimRight(pattern+"\t"+action+" "+publicText(e.Reason), " ") + "\n"
}

// dotText returns the lines for a domain and its subdomains. Postfix looks for the
// domain, then for each domain above it with a dot before it.
func (o WriteOptions) dotText(l *listWriter, name string) string {
	text := ""
	entry, here := l.at(name)
	below, more := l.below(name)
	for _, s := range spellings(name) {
		if here {
			text += o.tableLine(s, entry)
		}
		if more && name[0] != '[' {
			text += o.tableLine("."+s, below)
		}
	}
	return text
}

// tableText returns the lines for a domain and its subdomains, which mean the same with
// and without smtpd_access_maps in parent_domain_matches_subdomains.
func (o WriteOptions) tableText(l *listWriter, name string) string {
	strictEntry, below := strictness(l, name)
	e := strictEntry.entry
	if below.strict < strictEntry.strict {
		e = below.entry
	}
	switch {
	case name[0] == '[' && strictEntry.strict > unlisted:
		return o.tableLine(name, strictEntry.entry)
	case e.Key == "" && (strictEntry.entry.Exception || below.entry.Exception):
		e.Exception = true
	case e.Key == "":
		return ""
	}
	text := ""
	for _, s := range spellings(name) {
		text += o.tableLine(s, e) + o.tableLine("."+s, e)
	}
	return text
}

// fitsTable returns an error for an entry of a domain about whose subdomains the list
// says something else.
func fitsTable(l *listWriter, e Entry) error {
	name := nameOf(e.Key)
	if strictEntry, below := strictness(l, name); name[0] != '[' && max(strictEntry.strict, excepted) != max(below.strict, excepted) {
		return errSubdomains
	}
	return nil
}

// How strict an entry is.
const (
	unlisted = iota
	excepted
	deferred
	refused
)

type strictEntry struct {
	entry  Entry
	strict int
}

// strictness returns what counts for the senders at a domain, and at its subdomains.
func strictness(l *listWriter, name string) (strictEntry, below strictEntry) {
	var ok bool
	above, inherits := Entry{}, false
	if strictEntry.entry, ok = l.at(name); !ok {
		above, inherits = l.inherited(name)
		strictEntry.entry, ok = above, inherits
	}
	strictEntry.strict = strict(strictEntry.entry, ok)
	if below.entry, ok = l.below(name); !ok {
		if !inherits {
			above, inherits = l.inherited(name)
		}
		below.entry, ok = above, inherits
	}
	below.strict = strict(below.entry, ok)
	return strictEntry, below
}

func strict(e Entry, ok bool) int {
	switch {
	case !ok:
		return unlisted
	case e.Exception:
		return excepted
	case e.Defer:
		return deferred
	}
	return refused
}
