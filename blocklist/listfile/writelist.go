package listfile

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

// listWriter writes one list.
type listWriter struct {
	List
	form    form
	options WriteOptions
	out     *bufio.Writer
	skipped func(Problem)
	written int
	texts   int // that were put out

	// milder are exceptions that count instead of what the list has under their
	// keys: see soften.
	milder map[string]Entry

	filled map[string]bool // names that zoneText has written for others
}

// has returns the entry that the output has for a key.
func (l *listWriter) has(key string, kind sender.Kind) (Entry, bool) {
	if e, ok := l.milder[key]; ok {
		return e, true
	}
	e, ok := l.listed(key, kind)
	if !ok || l.form.carries(e) != nil {
		return Entry{}, false
	}
	return e, true
}

// listed returns the list's own entry for a key.
func (l *listWriter) listed(key string, kind sender.Kind) (Entry, bool) {
	if !l.Kinds.Has(kind) {
		return Entry{}, false
	}
	e, ok := l.Lookup(key)
	return cleanEntry(e), ok
}

// cleanEntry returns an entry whose comment is within a line. A Reader yields no others;
// but a line end in a reason would begin a line.
func cleanEntry(e Entry) Entry {
	e.Reason, e.Note = cleanText(e.Reason), cleanText(e.Note)
	return e
}

// writeAll writes the list's entries, then the exceptions that stand for none of them.
func (l *listWriter) writeAll() {
	for e := range l.Entries {
		e = cleanEntry(e)
		if l.form.domain == nil || !isDomain(e.Kind) {
			l.alone(e)
		} else if name := nameOf(e.Key); l.first(name) == e.Key {
			l.put(l.form.domain(l, name))
		}
		if err := l.expresses(e); err != nil {
			l.skipped(Problem{
				Line: e.Line, Text: clip(AsEntry(e)),
				What: fmt.Sprintf("%s cannot express it: %v", kinds[l.options.Format], err),
			})
			continue
		}
		l.written++
	}
	for _, e := range l.additions() {
		if l.form.domain == nil || !isDomain(e.Kind) {
			l.put(l.form.entry(e))
		} else {
			l.put(l.form.domain(l, nameOf(e.Key)))
		}
	}
}

// alone writes an entry by itself.
func (l *listWriter) alone(e Entry) {
	if _, ok := l.milder[e.Key]; ok {
		e.Exception, e.Defer, e.Until = true, false, 0
	} else if l.form.carries(e) != nil {
		return
	}
	l.put(l.form.entry(e))
}

// put writes a text.
func (l *listWriter) put(text string) {
	if text == "" {
		return
	}
	if l.texts++; l.texts > 1 {
		l.out.WriteString(l.form.between)
	}
	l.out.WriteString(text)
}

// expresses returns an error for an entry that the output does not express as it is.
func (l *listWriter) expresses(e Entry) error {
	if err := l.form.carries(e); err != nil {
		return err
	}
	if _, ok := l.milder[e.Key]; ok && !e.Exception {
		return errNoneToIt
	}
	if l.form.fits != nil && isDomain(e.Kind) {
		if err := l.form.fits(l, e); err != nil {
			return err
		}
	}
	if e.Until != 0 && !l.form.expiry {
		return errEnd
	}
	return nil
}

// additions returns the exceptions of milder that stand for no entry of the list.
func (l *listWriter) additions() []Entry {
	var more []Entry
	names := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(l.milder)) {
		e := l.milder[key]
		if l.form.domain == nil || !isDomain(e.Kind) {
			if _, ok := l.listed(key, e.Kind); !ok {
				more = append(more, e)
			}
		} else if name := nameOf(key); l.first(name) == "" && !names[name] {
			names[name] = true
			more = append(more, e)
		}
	}
	return more
}

// soften adds the exceptions to milder that keep the output from refusing what the list
// does not refuse: some exceptions, and entries that defer, cannot be expressed.
func (l *listWriter) soften() {
	for e := range l.Entries {
		if (e.Exception || e.Defer) && l.form.carries(e) != nil {
			l.softenFor(e)
		}
	}
}

// softenFor adds what takes the place of one entry.
func (l *listWriter) softenFor(e Entry) {
	walk, ok := walkOf(e)
	if !ok || e.For != "" {
		return
	}
	own := false // the walk has come to the entry's key: what follows is less specific
	for key, ok := walk.Next(); ok; key, ok = walk.Next() {
		if text := string(key.Text); own {
			covering, ok := l.has(text, key.Kind)
			if !ok {
				continue
			}
			if !covering.Exception && !(covering.Defer && e.Defer) {
				l.except(e, covering)
			}
			if !l.form.noExceptions {
				return
			}
		} else {
			own = text == e.Key
		}
	}
}

// except adds an exception for the senders of e to an entry that covers them: the
// smallest that the format can express.
func (l *listWriter) except(e, covering Entry) {
	exception := func(key string, kind sender.Kind) Entry {
		return Entry{Key: key, Kind: kind, Exception: true, Line: e.Line}
	}
	carried := func(e Entry) bool { return !l.form.noExceptions && l.form.carries(e) == nil }
	entry := exception("@"+e.Key[strings.LastIndexByte(e.Key, '@')+1:], sender.KindAtDomain)
	oneDomain := e.Kind == sender.KindAddress || e.Kind == sender.KindAtDomain
	add := exception("*."+nameOf(covering.Key), sender.KindSubdomains)
	switch own := exception(e.Key, e.Kind); {
	case carried(own):
		add = own
	case !isDomain(covering.Kind) && (covering.Kind == sender.KindAddress || !oneDomain):
		add = exception(covering.Key, covering.Kind)
	case oneDomain && (!isDomain(covering.Kind) || nameOf(covering.Key) == entry.Key[1:] || carried(entry)):
		add = entry
	}
	l.milder[add.Key] = add
}

// nameOf returns the domain of an entry for a domain or its subdomains.
func nameOf(key string) string { return strings.TrimPrefix(strings.TrimPrefix(key, "@"), "*.") }

// parentOf returns the domain above a domain, or "".
func parentOf(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}

// first returns the first of the keys for a domain and its subdomains that the list has
// an entry for, or "".
func (l *listWriter) first(name string) string {
	if name[0] == '[' {
		return "@" + name
	}
	for _, k := range []struct {
		key  string
		kind sender.Kind
	}{{"@" + name, sender.KindAtDomain}, {name, sender.KindDomain}, {"*." + name, sender.KindSubdomains}} {
		if _, ok := l.listed(k.key, k.kind); ok {
			return k.key
		}
	}
	return ""
}

// at returns the output's own entry for the senders at a domain, if it has one.
func (l *listWriter) at(name string) (Entry, bool) {
	if e, ok := l.has("@"+name, sender.KindAtDomain); ok {
		return e, true
	}
	return l.has(name, sender.KindDomain)
}

// below returns the output's own entry for the subdomains of a domain, if it has one.
func (l *listWriter) below(name string) (Entry, bool) {
	if e, ok := l.has("*."+name, sender.KindSubdomains); ok {
		return e, true
	}
	return l.has(name, sender.KindDomain)
}

// inherited returns the entry for a domain that the domains above it have, if there is
// one.
func (l *listWriter) inherited(name string) (Entry, bool) {
	for p := parentOf(name); p != ""; p = parentOf(p) {
		if e, ok := l.below(p); ok {
			return e, true
		}
	}
	return Entry{}, false
}
