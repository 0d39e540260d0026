package listfile

import (
	"errors"
	"fmt"

	"spamgate/blocklist/sender"
)

// This file reads the lines of a list with Options.PerRecipient.

var (
	errOneSide   = errors.New("only one address on the line")
	errMarkFirst = errors.New(`an exception mark ("!") before the recipient`)
	errNobody    = errors.New("the null sender is not a recipient")
	errEverybody = errors.New("this would be every recipient")
)

// sideHints say what to do about an error of a line with two sides.
var sideHints = map[error]string{
	errOneSide:   "write RECIPIENT ENTRY: whose mail it is, white space, then the sender",
	errMarkFirst: `write the "!" before the entry: RECIPIENT !ENTRY`,
	errNobody:    "name the recipient, or a domain as @example.net",
	errEverybody: "what counts for all recipients belongs into a list without per_recipient",
}

// sideError is an error in one of the sides.
type sideError struct {
	recipient bool
	err       error
}

func (e sideError) Error() string { return e.err.Error() }
func (e sideError) Unwrap() error { return e.err }

// parseSides parses a line without its comment.
func parseSides(s string, o Options) (Entry, error) {
	if !o.PerRecipient {
		return parseEntry(s, o)
	}
	recipient, entry := cutPattern(trim(s))
	if entry == "" {
		return Entry{}, errOneSide
	}
	r, err := parseRecipient(recipient, o)
	if err != nil {
		return Entry{}, err
	}
	e, err := parseEntry(entry, o)
	if err != nil {
		return Entry{}, sideError{err: err}
	}
	e.For = r
	return e, nil
}

// parseRecipient returns the key of the recipient's side.
func parseRecipient(s string, o Options) (key string, err error) {
	if s[0] == '!' && o.Allow {
		return "", sideError{true, errAllow}
	} else if s[0] == '!' {
		return "", errMarkFirst
	}
	r, err := parseEntry(s, o)
	switch {
	case err == errEverything:
		return "", errEverybody
	case err != nil:
		return "", sideError{true, err}
	case r.Kind == sender.KindNull:
		return "", errNobody
	}
	return r.Key, nil
}

// explainSides makes the Problem for a line that parseSides refuses.
func explainSides(text string, o Options, err error) Problem {
	if hint, ok := sideHints[err]; ok {
		return Problem{Text: text, What: err.Error(), Hint: hint}
	}
	var in sideError
	if !errors.As(err, &in) {
		return explain(text, o, err)
	}
	recipient, entry := cutPattern(trim(text))
	side, what := entry, "the entry"
	if in.recipient {
		side, what = recipient, "the recipient"
	}
	p := explain(side, o, in.err)
	p.What = fmt.Sprintf("%s %q: %s", what, clip(side), p.What)
	p.Text, p.Unsupported = text, p.Unsupported && !in.recipient
	if s := suggest(trim(side), o); s != "" {
		if in.recipient {
			recipient = s
		} else {
			entry = s
		}
		p.Hint = "write " + recipient + " " + entry
	}
	return p
}

// explainLine is explainSides for a line of a file, which may be one of a list with recipients
// whose options do not say so.
func explainLine(text string, o Options, err error) Problem {
	p := explainSides(text, o, err)
	if p.What == errSpace.Error() && !o.PerRecipient {
		o.PerRecipient = true
		if _, err := parseSides(text, o); err == nil {
			p.Hint = "write one entry a line, or set per_recipient = true if the first one is a recipient"
		}
	}
	return p
}

// quickSides reads two sides as quickEntry reads an entry. If it returns false, parseSides
// decides; otherwise it agrees with parseSides.
func quickSides(s string, o *Options) (Entry, bool) {
	pos := 0
	for pos < len(s) && !isBlank(s[pos]) {
		pos++
	}
	r, ok := quickEntry(s[:pos], o)
	if !ok {
		return Entry{}, false
	}
	for pos < len(s) && isBlank(s[pos]) {
		pos++
	}
	e, ok := quickEntry(s[pos:], o)
	e.For = r.Key
	return e, ok
}
