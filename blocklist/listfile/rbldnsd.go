package listfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"spamgate/blocklist/sender"
)

// rbldnsd reads a dnset of rbldnsd(8).
type rbldnsd struct {
	text  string     // the default text
	vars  [10]string // $0 to $9
	until int64      // the earliest expiry so far, which all following entries have
	begun bool       // an entry was read
	other bool       // in a $DATASET of another type
}

func (r *rbldnsd) line(o *output, line int, text string) {
	s := trim(text)
	if rest, ok := directive(s); ok {
		r.directive(o, line, s, rest)
		return
	}
	if r.other {
		o.remark(noteDataset, line, s)
		return
	}
	if value, ok := strings.CutPrefix(s, ":"); ok {
		r.text, _ = splitValue(value)
		return
	}
	if excluded, ok := strings.CutPrefix(s, "!"); ok {
		s = "!" + strings.TrimLeft(excluded, " \t")
	}
	r.begun = true
	name, value := cutPattern(s)
	e, err := r.entry(o, name)
	if err == nil {
		e.Until = r.until
		switch {
		case value == "":
			e.Reason = r.expand(r.text, name)
		case value[0] == '#' || value[0] == ';':
			e.Reason = r.expand(r.text, name)
			e.Note = strings.TrimSpace(value[1:])
		default:
			if v, ok := strings.CutPrefix(value, ":"); ok {
				if value, ok = splitValue(v); !ok {
					value = r.text
				}
			}
			e.Reason = r.expand(value, name)
		}
	}
	if err == nil && e.Exception && e.Kind == sender.KindDomain {
		// It excludes the name and its subdomains, also where an entry for one of the
		// two is more specific here.
		below := e
		below.Kind, below.Key = sender.KindSubdomains, "*."+e.Key
		o.put(line, name, below, nil)
		e.Kind, e.Key = sender.KindAtDomain, "@"+e.Key
	}
	o.put(line, name, e, err)
}

// entry parses a name: alone without subdomains, .name with its subdomains, *.name
// for those alone; a leading ! excludes.
func (r *rbldnsd) entry(o *output, name string) (Entry, error) {
	name, excluded := strings.CutPrefix(name, "!")
	if excluded && o.options.Allow {
		return Entry{}, errAllow
	}
	if isClient(name) || strings.Count(name, ":") > 1 {
		return Entry{}, errClient
	}
	e, err := o.starred(name, func(s string) (Entry, error) {
		if below, ok := strings.CutPrefix(s, "."); ok {
			return domain(below, sender.KindDomain, o.options)
		}
		return o.exactly(s)
	})
	e.Exception = excluded
	return e, err
}

// splitValue returns the text of ":127.0.0.2:text" without its first colon, and
// reports whether there is a second colon. Without one an entry has the default
// text, with one and no text it has none.
func splitValue(s string) (string, bool) {
	_, text, ok := strings.Cut(s, ":")
	return strings.TrimSpace(text), ok
}

// expand replaces $ by the name, $$ by a dollar sign and $1 by a variable.
func (r *rbldnsd) expand(s, name string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	s = dollar.ReplaceAllStringFunc(s, func(ref string) string {
		switch ref {
		case "$":
			return strings.ToLower(strings.TrimSuffix(strings.TrimLeft(name, "!*."), "."))
		case "$$":
			return "$"
		}
		return r.vars[ref[1]-'0']
	})
	// Texts that refer to long ones could fill the memory.
	return strings.ToValidUTF8(s[:min(len(s), MaxLine)], "")
}

var dollar = regexp.MustCompile(`\$[$0-9]?`)

// directive returns the text of a directive and reports whether a line is one: it
// begins with $ which, for another program, may follow # ; or a colon.
func directive(s string) (string, bool) {
	if len(s) > 1 && strings.IndexByte("#;:", s[0]) >= 0 {
		s = s[1:]
	}
	return strings.CutPrefix(s, "$")
}

func (r *rbldnsd) directive(o *output, line int, text, s string) {
	word, rest := cutPattern(s)
	switch word {
	case "TIMESTAMP":
		r.timestamp(o, line, text, strings.Fields(rest))
	case "DATASET":
		kind, _ := cutPattern(rest)
		kind, _, _ = strings.Cut(kind, ":")
		r.other = kind != "dnset" && kind != "dnhash" // stored in another way
		*r = rbldnsd{until: r.until, begun: r.begun, other: r.other}
	case "SOA", "NS", "TTL", "MAXRANGE4", "=":
		o.remark(noteDirective, line, text)
	default:
		if len(word) == 1 && '0' <= word[0] && word[0] <= '9' {
			r.vars[word[0]-'0'] = rest
			return
		}
		o.refuse(line, Problem{Text: text, What: "an unknown directive"})
	}
}

// clockSkew is how far in the future a file may be: its times have no zone.
const clockSkew = 24 * time.Hour

// timestamp reads "$TIMESTAMP made expires".
func (r *rbldnsd) timestamp(o *output, line int, text string, fields []string) {
	wrong := Problem{
		Text: text, What: "a $TIMESTAMP that is not a time",
		Hint: "write $TIMESTAMP 2026:12:31:18:00:00, perhaps with a second time, or +2d, after it",
	}
	if len(fields) == 0 || len(fields) > 2 {
		o.refuse(line, wrong)
		return
	}
	made, ok := parseStamp(fields[0])
	if !ok {
		o.refuse(line, wrong)
		return
	}
	if !made.IsZero() && made.Unix() > o.options.Now+int64(clockSkew/time.Second) {
		o.fail(fmt.Errorf("line %d: %w: its $TIMESTAMP, %s, is in the future; rbldnsd does not load such a file either",
			line, ErrSyntax, made.Format(time.RFC3339)))
		return
	}
	if len(fields) == 1 {
		return
	}
	if relative, ok := strings.CutPrefix(fields[1], "+"); ok {
		d, ok := parseSpan(relative)
		if !ok || made.IsZero() {
			o.refuse(line, wrong)
			return
		}
		r.expire(o, line, text, made.Add(d))
		return
	}
	expires, ok := parseStamp(fields[1])
	if !ok {
		o.refuse(line, wrong)
		return
	}
	if !expires.IsZero() {
		r.expire(o, line, text, expires)
	}
}

// expire applies an expiry. In rbldnsd a whole file expires with its earliest
// $TIMESTAMP, wherever that is. Entries before this line have been passed on without
// it, so a file whose time is over is refused here.
func (r *rbldnsd) expire(o *output, line int, text string, instant time.Time) {
	until := max(1, instant.Unix())
	if r.until != 0 && r.until <= until {
		return
	}
	r.until = until
	switch {
	case !r.begun:
	case until <= o.options.Now:
		o.fail(fmt.Errorf("line %d: %w: by its $TIMESTAMP the file expired at %s; rbldnsd does not serve such a file either",
			line, ErrSyntax, instant.Format(time.RFC3339)))
	default:
		o.refuse(line, Problem{
			Text: text, What: "an expiry after the first entry: in rbldnsd it is that of the whole file, here only of what follows",
			Hint: "move the line before the first entry",
		})
	}
}

// parseStamp parses yyyy:mm:dd[:hh[:mi[:ss]]], with colons, hyphens or nothing
// between. "0" and "-" are the zero time.
func parseStamp(s string) (time.Time, bool) {
	if s == "0" || s == "-" {
		return time.Time{}, true
	}
	digits := strings.NewReplacer(":", "", "-", "").Replace(s)
	const layout = "20060102150405"
	if n := len(digits); n < 8 || n > len(layout) || n%2 != 0 {
		return time.Time{}, false
	}
	t, err := time.Parse(layout, digits+"20060102000000"[len(digits):])
	return t, err == nil && !t.IsZero()
}

// parseSpan parses a number of seconds, or a number with s, m, h, d or w.
func parseSpan(s string) (time.Duration, bool) {
	unit := time.Second
	if s != "" {
		if u, ok := map[byte]time.Duration{
			's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
		}[s[len(s)-1]]; ok {
			unit, s = u, s[:len(s)-1]
		}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return time.Duration(n) * unit, err == nil && n <= uint64(1<<62)/uint64(unit)
}
