package listfile

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"spamgate/blocklist/sender"
)

// Writable lists the formats that Write supports.
var Writable = []Format{Plain, PostfixAccess, RBLDNSD, RPZ, Rspamd, JSON}

// List is a list to be written: one entry for each key, as an index has them.
type List struct {
	// Entries yields the entries in the order in which they are written. It is
	// called twice.
	Entries iter.Seq[Entry]

	// Lookup returns the entry of a key.
	Lookup func(key string) (Entry, bool)

	// Kinds are the kinds of entries in the list; zero means any.
	Kinds sender.KindSet
}

// WriteOptions say how a list is written.
type WriteOptions struct {
	Format Format

	// Allow means that the list is an allow list: in the other program its entries
	// let senders through.
	Allow bool

	// Exact means that a list with Options.Exact reads what is written.
	Exact bool

	// Serial is the serial number of a response policy zone.
	Serial uint32

	// DotSubdomains is for a Postfix with smtpd_access_maps taken out of
	// parent_domain_matches_subdomains. Its tables can tell a domain from its
	// subdomains.
	DotSubdomains bool

	// Action is the action of a Postfix table for the senders of a block list;
	// empty means REJECT.
	Action string
}

// Write writes a list in a format, so that the program that reads it decides about each
// sender like the list. It returns the number of entries that were written.
//
// What a format cannot express makes the other program refuse less, never more. Such an
// entry is left out. If it is an exception, what it is an exception to is left out for
// its domain as well. Write passes each, with the reason, to skipped, which may be nil.
//
// A plain list can express everything but Defer, and only it has the private notes. JSON
// has no comments and no expiry. A Postfix table has no expiry; what is said of a domain
// holds for its subdomains, too, unless WriteOptions.DotSubdomains is set. The other
// formats have no expiry, no Defer, and only domains; rspamd has addresses, but no
// exceptions. In a format without expiry an exception is written without its end.
func Write(w io.Writer, list List, o WriteOptions, skipped func(Problem)) (written int, err error) {
	f, ok := newForm(o)
	if !ok {
		return 0, fmt.Errorf("format %q cannot be written; use one of %s", o.Format, formatNames(Writable))
	}
	if skipped == nil {
		skipped = func(Problem) {}
	}
	if o.Format != Plain {
		f.carries = withoutRecipient(f.carries)
	}
	list.Kinds = cmp.Or(list.Kinds, sender.AllKinds)
	l := &listWriter{List: list, form: f, options: o, skipped: skipped,
		out: bufio.NewWriterSize(w, readBuffer), milder: map[string]Entry{}, filled: map[string]bool{}}
	l.out.WriteString(f.start) // errors stay in out until Flush
	l.soften()
	l.writeAll()
	l.out.WriteString(f.end)
	return l.written, l.out.Flush()
}

// form is how a format is written.
type form struct {
	start, between, end string

	// carries returns an error for an entry that the format cannot express.
	carries func(Entry) error

	// entry returns the text of an entry, with its line end.
	entry func(Entry) string

	// domain returns the text of all entries for a domain and its subdomains. If
	// it is nil, each of them is written by entry.
	domain func(l *listWriter, name string) string

	// fits, if not nil, returns an error for an entry that the text of its domain
	// does not express.
	fits func(l *listWriter, e Entry) error

	// expiry means that the format has it. Without exceptions, whatever matches
	// counts.
	expiry, noExceptions bool
}

func newForm(o WriteOptions) (form, bool) {
	switch o.Format {
	case Plain:
		return form{carries: o.carriesPlain, entry: o.PlainLine, expiry: true}, true
	case JSON:
		return form{start: "[\n", between: ",\n", end: "\n]\n", carries: o.carriesJSON, entry: o.jsonText}, true
	case PostfixAccess:
		return o.postfixForm(), true
	case RBLDNSD:
		return form{start: "# A dnset of rbldnsd.\n:127.0.0.2:\n", carries: carriesName, domain: dnsetText}, true
	case RPZ:
		return o.zoneForm(), true
	case Rspamd:
		return form{start: rspamdStart, carries: carriesMap, entry: mapEntry, domain: mapText, noExceptions: true}, true
	}
	return form{}, false
}

var (
	errNoUntil   = errors.New("it expires")
	errNoDefer   = errors.New("it defers instead of refusing")
	errReadsElse = errors.New("it would be read as something else")
	errEnd       = errors.New("it expires; it is written without its end")
	errNoneToIt  = errors.New("there is an exception to it that is left out")
	errRecipient = errors.New("it counts for some recipients only")
)

// withoutRecipient returns carries for a format without recipients.
func withoutRecipient(carries func(Entry) error) func(Entry) error {
	return func(e Entry) error {
		if e.For != "" {
			return errRecipient
		}
		return carries(e)
	}
}

// carriesComment returns an error for an entry that expires, unless it is an exception,
// or that defers.
func carriesComment(e Entry) error {
	switch {
	case e.Exception:
		return nil
	case e.Until != 0:
		return errNoUntil
	case e.Defer:
		return errNoDefer
	}
	return nil
}

// AsEntry returns the text of an entry, as ParseEntry reads it in a list that is
// not exact. An entry for a recipient has both sides, with a space between.
func AsEntry(e Entry) string {
	text := quotedKey(e.Key)
	if e.Exception {
		text = "!" + text
	}
	if e.For != "" {
		text = quotedKey(e.For) + " " + text
	}
	return text
}

// quotedKey returns a key with quotes if the local part would be read as something else.
func quotedKey(key string) string {
	pos := strings.LastIndexByte(key, '@')
	if pos > 0 && key[0] != '"' && (key[0] == '#' || key[0] == '!' || strings.Contains(key[:pos], "*")) {
		return `"` + key[:pos] + `"` + key[pos:]
	}
	return key
}

// asEntry returns the text of an entry for the list that will read it.
func asEntry(e Entry, exact bool) string {
	if exact && e.Kind == sender.KindDomain {
		e.Key = "." + e.Key
	}
	if exact && e.For != "" && !strings.Contains(e.For, "@") && !strings.HasPrefix(e.For, "*.") {
		e.For = "." + e.For
	}
	return AsEntry(e)
}

func (o WriteOptions) carriesPlain(e Entry) error {
	if e.Defer && !e.Exception {
		return errNoDefer
	}
	return o.sameBack(Plain, o.PlainLine(e), e)
}

// PlainLine returns the line of a plain list for an entry, with its end.
func (o WriteOptions) PlainLine(e Entry) string {
	l := LineOf(e, Options{Exact: o.Exact})
	return l.Text + l.comment(" ") + "\n"
}

// LineOf returns the line of an entry, which a list of another kind may have. What would have
// a meaning in its comment is changed: a reason that began with # would end, or continue as a
// note.
func LineOf(e Entry, o Options) Line {
	return Line{
		Text: asEntry(e, o.Exact), Until: FormatUntil(e.Until),
		Reason: strings.TrimLeft(withoutMarks(withoutUntil(e.Reason)), "# "), Note: strings.TrimLeft(withoutUntil(e.Note), "# "),
	}
}

// Text returns a form of an entry that a list with these options reads as that entry, or ""
// if there is none.
func Text(e Entry, o Options) string {
	text := asEntry(e, o.Exact)
	got, err := ParseEntry(text, o)
	if err != nil || got.For != e.For || got.Key != e.Key || got.Kind != e.Kind || got.Exception != e.Exception {
		return ""
	}
	return text
}

// withoutUntil changes what would be an expiry: a reason from another format may have
// the word.
func withoutUntil(s string) string { return strings.ReplaceAll(s, untilWord, "until ") }

// withoutMarks replaces ##, which would begin the note.
func withoutMarks(s string) string {
	for strings.Contains(s, "##") {
		s = strings.ReplaceAll(s, "##", "#")
	}
	return s
}

func (o WriteOptions) carriesJSON(e Entry) error {
	if err := carriesComment(e); err != nil {
		return err
	}
	e.Until = 0
	return o.sameBack(JSON, asEntry(e, o.Exact), e)
}

func (o WriteOptions) jsonText(e Entry) string {
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)        // for <>, the null sender
	out.Encode(asEntry(e, o.Exact)) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// sameBack reads what was written. So many entries are odd (a local part that
// starts with a #, a name that looks like a setting) that this is safer than a test
// for each.
func (o WriteOptions) sameBack(f Format, text string, want Entry) error {
	read := Options{AllowPublicSuffix: true, Exact: o.Exact, Allow: o.Allow, PerRecipient: want.For != ""}
	got, ok := ParseLine(strings.TrimSuffix(text, "\n"), read)
	if f == JSON {
		got, ok = Entry{}, false
		newOutput(read, func(e Entry) error {
			got, ok = e, true
			return nil
		}, nil).uncommented(1, text)
	}
	if !ok || got.For != want.For || got.Key != want.Key || got.Kind != want.Kind ||
		got.Exception != want.Exception || got.Defer != want.Defer || got.Until != want.Until {
		return errReadsElse
	}
	return nil
}
