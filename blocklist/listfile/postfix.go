package listfile

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"spamgate/blocklist/sender"
)

// table reads a table of keys and what to do about them: Postfix's, Exim's, Sendmail's. In
// the first two a line that starts with white space continues the one before, so each line
// is held until the next.
type table struct {
	// read reads a line, whole, and returns its key as it is written. What says whether it
	// is a line of a table.
	read func(o *output, text string) (key string, e Entry, err error)

	first int // number of the first line that is held; 0 means none
	text  strings.Builder
	long  bool

	// verdicts are those of the keys so far, by the keys' hashes: about 30 bytes a key.
	// postmap(1), texthash: tables, makemap(8) and lsearch keep the first line of a key.
	verdicts map[uint64]tableVerdict
	seed     maphash.Seed
}

// tableVerdict is what the first line of a key says.
type tableVerdict struct {
	line   int32
	listed bool // the list's type applies: blocked, or in an allow list allowed
}

func (p *table) line(o *output, line int, text string) {
	if !isBlank(text[0]) {
		p.end(o)
		p.first = line
	} else if p.first == 0 {
		o.refuse(line, Problem{Text: text, What: "a continuation line without a line before it", Hint: "remove the white space at its beginning"})
		return
	}
	if p.text.Len()+len(text) >= MaxLine {
		p.long = p.long || p.text.Len() > 0
	}
	if !p.long {
		if p.text.Len() > 0 {
			p.text.WriteByte(' ')
		}
		p.text.WriteString(trim(text))
	}
}

// end reads the line that is held.
func (p *table) end(o *output) {
	if p.first == 0 {
		return
	}
	line, text, long := p.first, p.text.String(), p.long
	p.first, p.long = 0, false
	p.text.Reset()
	if long {
		o.refuse(line, tooLong(text))
		return
	}
	key, e, err := p.read(o, text)
	o.put(line, key, e, p.firstOf(line, e, err, o.options.Allow))
}

// postfixLine reads a line of access(5).
func postfixLine(o *output, text string) (string, Entry, error) {
	pattern, action := cutPattern(text)
	e, err := o.postfixPattern(pattern)
	if err == nil {
		e, err = o.postfixAction(e, action)
	}
	if err == errNoAction {
		pattern = text
	}
	return pattern, e, err
}

// firstOf returns err, unless an earlier line has the key and another verdict: the
// program ignores the later one. Other repeated keys change nothing.
func (p *table) firstOf(line int, e Entry, err error, allow bool) error {
	if e.Key == "" || err != nil && err != errBlocks && !errors.As(err, new(unsupported)) {
		return err // not a line of a table
	}
	if p.verdicts == nil {
		p.verdicts, p.seed = map[uint64]tableVerdict{}, maphash.MakeSeed()
	}
	key := maphash.String(p.seed, e.Key)
	listed := err == nil && !e.Exception || err == errDiscard && !allow
	first, repeated := p.verdicts[key]
	switch {
	case !repeated:
		p.verdicts[key] = tableVerdict{int32(line), listed}
		return err
	case first.listed == listed:
		return err
	}
	return unsupported{
		what: fmt.Sprintf("the key of line %d again; the first line of a key counts", first.line),
		hint: "remove one of the lines",
	}
}

// cutPattern splits s at the first white space outside quotes.
func cutPattern(s string) (pattern, action string) {
	pos := unquotedIndex(s, func(i int) bool { return isBlank(s[i]) })
	if pos < 0 {
		return s, ""
	}
	return s[:pos], trim(s[pos:])
}

var (
	errNoAction   = errors.New("a pattern without an action")
	errCodeAlone  = errors.New("a code without a text, which Postfix reads as OK; add a text, or write OK")
	errAtDomain   = errors.New(`an "@" without a local part, which is never looked up; write the domain alone`)
	errDunno      = unsupported{what: "the action DUNNO, which does not let senders through", hint: "write OK to let senders through"}
	errDiscard    = unsupported{what: "the action DISCARD", hint: "write REJECT, or put the line in a list with action = \"discard\""}
	errNoWildcard = errors.New(`a "*", which such tables do not have; write .example.com for subdomains`)
)

// postfixPattern parses the left side.
func (o *output) postfixPattern(s string) (Entry, error) {
	switch {
	case s == "<>":
		return Entry{Key: "<>", Kind: sender.KindNull}, nil
	case isClient(s), strings.Count(s, ":") > 1 && !strings.Contains(s, "@"):
		return Entry{}, errClient
	case strings.HasPrefix(s, "/"):
		return Entry{}, errRegexp
	case s[0] == '@':
		return Entry{}, errAtDomain
	case s[0] == '[':
		return atDomain(s)
	case strings.HasPrefix(s, "*"):
		return Entry{}, errNoWildcard
	case strings.HasSuffix(s, "@"):
		return local(s[:len(s)-1])
	case strings.Contains(s, "@") || s[0] == '"':
		return address(s)
	case s[0] == '.':
		return domain(s[1:], sender.KindSubdomains, o.options)
	}
	return o.wide(s)
}

// postfixAction applies the right side to an entry.
func (o *output) postfixAction(e Entry, s string) (Entry, error) {
	action, text := cutPattern(s)
	upper := strings.ToUpper(action)
	switch {
	case action == "":
		return e, errNoAction
	case upper == "REJECT":
		e.Reason = withoutStatus(text)
		return o.judged(e, false)
	case upper == "DEFER", upper == "DEFER_IF_PERMIT":
		e.Defer, e.Reason = true, withoutStatus(text)
		return o.judged(e, false)
	case len(action) == 3 && isNumber(action) && (action[0] == '4' || action[0] == '5') && text != "":
		e.Defer, e.Reason = action[0] == '4', withoutStatus(text)
		return o.judged(e, false)
	case len(s) == 3 && isNumber(s) && (s[0] == '4' || s[0] == '5'):
		return e, errCodeAlone
	case upper == "OK", upper == "RELAY", strings.Trim(s, "0123456789") == "":
		return o.judged(e, true)
	case upper == "DUNNO" && o.options.Allow:
		return e, errDunno
	case upper == "DUNNO":
		return o.judged(e, true)
	case upper == "DISCARD" && o.options.Discard:
		e.Reason = text
		return o.judged(e, false)
	case upper == "DISCARD":
		return e, errDiscard
	}
	return e, unsupported{
		what:   fmt.Sprintf("the action %s, which does not refuse", cleanText(action)),
		hint:   "an entry says REJECT, DEFER, 4NN or 5NN with a text, OK or DUNNO",
		spares: true, // Postfix stops at the first line that matches
	}
}

// withoutStatus removes a leading enhanced status code (RFC 3463): the reply has
// its own.
func withoutStatus(s string) string {
	code, text, _ := strings.Cut(s, " ")
	class, rest, ok := strings.Cut(code, ".")
	subject, detail, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || class != "4" && class != "5" || !isNumber(subject) || !isNumber(detail) {
		return s
	}
	return strings.TrimLeft(text, " \t")
}

func isNumber(s string) bool {
	return s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == ""
}
