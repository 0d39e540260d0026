package listfile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"spamgate/blocklist/sender"
)

// Writable lists the formats that Write supports.
var Writable = []Format{Plain, PostfixAccess, RBLDNSD, RPZ, JSON}

// Write writes entries in a format, so that a Reader gets the same keys from them.
// It skips an entry that the format cannot express and passes it, with the reason,
// to skipped, which may be nil. It returns the number of entries that were written.
//
// A plain list can express everything but Defer, and only it has the private notes.
// A Postfix table has no expiry and no entry for a domain without its subdomains;
// an exception becomes DUNNO. rbldnsd and response policy zones have only domains,
// and no expiry. JSON has no comments and no expiry.
func Write(w io.Writer, f Format, entries iter.Seq[Entry], skipped func(Problem)) (written int, err error) {
	form, ok := newForm(f)
	if !ok {
		return 0, fmt.Errorf("format %q cannot be written; use one of %s", f, formatNames(Writable))
	}
	if skipped == nil {
		skipped = func(Problem) {}
	}
	out := bufio.NewWriterSize(w, readBuffer)
	out.WriteString(form.start) // errors stay in out until Flush
	for e := range entries {
		// A Reader yields no others; but a line end in a reason would begin a line.
		e.Reason, e.Note = cleanText(e.Reason), cleanText(e.Note)
		text, err := form.entry(e)
		if err == nil {
			err = sameBack(f, text, e)
		}
		if err != nil {
			skipped(Problem{Line: e.Line, Text: clip(AsEntry(e)), What: fmt.Sprintf("%s cannot express it: %v", kinds[f], err)})
			continue
		}
		if written > 0 {
			out.WriteString(form.between)
		}
		if _, err := out.WriteString(text); err != nil {
			return written, err
		}
		written++
	}
	out.WriteString(form.end)
	return written, out.Flush()
}

// form writes a file.
type form struct {
	start, between, end string

	// entry returns the text of an entry, with its line end.
	entry func(Entry) (string, error)
}

func newForm(f Format) (form, bool) {
	switch f {
	case Plain:
		return form{entry: plainText}, true
	case PostfixAccess:
		return form{
			start: "# A Postfix access table; see access(5).\n" +
				"# .example.com needs smtpd_access_maps out of parent_domain_matches_subdomains,\n" +
				"# example.com needs it in there to stand for its subdomains too.\n",
			entry: postfixText,
		}, true
	case RBLDNSD:
		return form{start: "# A dnset of rbldnsd.\n:127.0.0.2:\n", entry: rbldnsdText}, true
	case RPZ:
		var last Entry
		return form{
			start: "$TTL 1h\n@ SOA localhost. hostmaster.localhost. ( 1 1h 15m 30d 2h )\n  NS localhost.\n",
			entry: func(e Entry) (string, error) { return zoneText(e, &last) },
		}, true
	case JSON:
		return form{start: "[\n", between: ",\n", end: "\n]\n", entry: jsonText}, true
	}
	return form{}, false
}

var (
	errNoUntil   = errors.New("it expires")
	errNoDefer   = errors.New("it defers instead of refusing")
	errDomains   = errors.New("it is not about a domain alone")
	errAlone     = errors.New("it is about a domain without its subdomains")
	errReadsElse = errors.New("it would be read as something else")
)

// AsEntry returns the text of an entry, as ParseEntry reads it in a list that is
// not exact.
func AsEntry(e Entry) string {
	key := e.Key
	at := strings.LastIndexByte(key, '@')
	// Quotes are needed only if the local part would be read as something else.
	if at > 0 && key[0] != '"' && (key[0] == '#' || key[0] == '!' || strings.Contains(key[:at], "*")) {
		key = `"` + key[:at] + `"` + key[at:]
	}
	if e.Exception {
		return "!" + key
	}
	return key
}

// plainText returns a line of a plain list. A reason that began with # would end,
// or continue as a note.
func plainText(e Entry) (string, error) {
	if e.Defer {
		return "", errNoDefer
	}
	var b strings.Builder
	b.WriteString(AsEntry(e))
	reason := strings.TrimLeft(withoutMarks(e.Reason), "# ")
	if e.Until != 0 {
		reason = strings.TrimRight(untilWord+formatUntil(e.Until)+" "+reason, " ")
	}
	if reason != "" {
		b.WriteString(" # " + reason)
	}
	if note := strings.TrimLeft(e.Note, "# "); note != "" {
		b.WriteString(" ## " + note)
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// withoutMarks replaces ##, which would begin the note.
func withoutMarks(s string) string {
	for strings.Contains(s, "##") {
		s = strings.ReplaceAll(s, "##", "#")
	}
	return s
}

func postfixText(e Entry) (string, error) {
	switch {
	case e.Until != 0:
		return "", errNoUntil
	case e.Kind == sender.KindAtDomain:
		return "", errAlone
	case strings.ContainsAny(e.Key, "\" \t") || e.Key[0] == '#':
		return "", errReadsElse
	}
	pattern, action := e.Key, "REJECT"
	if e.Kind == sender.KindSubdomains {
		pattern = e.Key[1:]
	}
	switch {
	case e.Exception:
		return pattern + "\tDUNNO\n", nil
	case e.Defer:
		action = "DEFER"
	}
	return strings.TrimRight(pattern+"\t"+action+" "+e.Reason, " ") + "\n", nil
}

// plainOnly returns an error for an entry that expires or defers.
func plainOnly(e Entry) error {
	switch {
	case e.Until != 0:
		return errNoUntil
	case e.Defer:
		return errNoDefer
	}
	return nil
}

// domainOf returns the domain of an entry that has nothing else.
func domainOf(e Entry) (string, error) {
	if err := plainOnly(e); err != nil {
		return "", err
	}
	switch {
	case e.Kind == sender.KindAtDomain && e.Key[1] != '[':
		return e.Key[1:], nil
	case e.Kind == sender.KindDomain, e.Kind == sender.KindSubdomains:
		return strings.TrimPrefix(e.Key, "*."), nil
	}
	return "", errDomains
}

func rbldnsdText(e Entry) (string, error) {
	name, err := domainOf(e)
	if err != nil {
		return "", err
	}
	switch e.Kind {
	case sender.KindDomain:
		name = "." + name
	case sender.KindSubdomains:
		name = "*." + name
	}
	if e.Exception {
		return "!" + name + "\n", nil
	}
	if e.Reason != "" {
		name += " :127.0.0.2:" + strings.ReplaceAll(e.Reason, "$", "$$")
	}
	return name + "\n", nil
}

// zoneText returns one record, or two for a domain with its subdomains. A reader
// joins such neighbours, so an empty comment separates others.
func zoneText(e Entry, last *Entry) (string, error) {
	name, err := domainOf(e)
	if err != nil {
		return "", err
	}
	record := " CNAME ."
	if e.Exception {
		record = " CNAME rpz-passthru."
	}
	if reason := strings.TrimLeft(withoutMarks(e.Reason), "; "); reason != "" {
		record += " ; " + reason
	}
	before := *last
	*last = e
	switch e.Kind {
	case sender.KindDomain:
		return name + record + "\n*." + name + record + "\n", nil
	case sender.KindSubdomains:
		text := "*." + name + record + "\n"
		if before.Kind == sender.KindAtDomain && before.Key == "@"+name {
			text = ";\n" + text
		}
		return text, nil
	}
	return name + record + "\n", nil
}

func jsonText(e Entry) (string, error) {
	if err := plainOnly(e); err != nil {
		return "", err
	}
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false) // for <>, the null sender
	err := out.Encode(AsEntry(e))
	return strings.TrimSuffix(b.String(), "\n"), err
}

// sameBack reads what was written. So many entries are odd (a local part that
// starts with a #, a name that looks like a setting) that this is safer than a test
// for each.
func sameBack(f Format, text string, want Entry) error {
	var got []Entry
	refused := false
	out := newOutput(Options{AllowPublicSuffix: true, Now: 1}, func(e Entry) error {
		got = append(got, e)
		return nil
	}, func(Problem) { refused = true })
	if f == JSON {
		var entry string
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			return err
		}
		out.uncommented(1, entry)
	} else if err := readText(f, text, out); err != nil {
		return err
	}
	if refused || len(got) != 1 || got[0].Key != want.Key || got[0].Kind != want.Kind ||
		got[0].Exception != want.Exception || got[0].Defer != want.Defer || got[0].Until != want.Until {
		return errReadsElse
	}
	return nil
}

// readText reads a few lines.
func readText(f Format, text string, out *output) error {
	g, err := grammarOf(f)
	if err != nil {
		return err
	}
	line := 0
	for text := range strings.Lines(text) {
		line++
		text, long := head(text)
		out.take(g, line, text, long)
	}
	if g.end != nil {
		g.end(out)
	}
	return out.err
}
