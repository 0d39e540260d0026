package listfile

import (
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"spamgate/blocklist/sender"
)

// unsupported is the error of a line that has a meaning in its format, but none
// that can be looked up here.
type unsupported struct {
	what, hint string

	// spares means that the format's program does not block the line's senders, even
	// if another line blocks a domain above: in a block list it is an exception.
	spares bool
}

func (u unsupported) Error() string { return u.what }

const noClients = "client addresses are not checked here"

var (
	errClient = unsupported{what: "an IP address is not a sender", hint: noClients}
	errRegexp = unsupported{what: "a regular expression", hint: "list the senders that it should match: a domain, *.example.com for its subdomains, user@ for a local part"}
	errGlob   = unsupported{what: "a pattern that no entry can express", hint: "*@example.com and *.example.com can be expressed"}
	errBlocks = errors.New("a line that blocks, in an allow list")
)

// put passes on the entry of a line in a format other than plain, or reports why it
// has none.
func (o *output) put(line int, text string, e Entry, err error) {
	if err != nil {
		var u unsupported
		if errors.As(err, &u) && u.spares && !o.options.Allow {
			o.add(Entry{Key: e.Key, Kind: e.Kind, Exception: true, Line: line})
		}
		o.refuse(line, foreignProblem(text, err))
		return
	}
	o.warn(e, line, text)
	e.Line, e.Reason, e.Note = line, cleanText(e.Reason), cleanText(e.Note)
	o.add(e)
}

// foreignProblem makes the Problem for a text that is not an entry of its format.
// Its hints do not name a plain entry, which would be wrong in that format.
func foreignProblem(text string, err error) Problem {
	p := Problem{Text: text, What: err.Error()}
	var u unsupported
	switch {
	case !utf8.ValidString(text):
		p.Hint = "save the file as UTF-8"
	case errors.As(err, &u):
		p.Unsupported, p.Hint = true, u.hint
	case err == errIP, isClient(trim(text)):
		p.What, p.Hint, p.Unsupported = errClient.what, errClient.hint, true
	case err == errSingleLabel, err == errSuffix:
		p.Hint = "if all domains below it are meant, set allow_public_suffix = true"
	case err == errLabelAlone, err == errSuffixAlone:
		p.Hint = "if this very name is meant, set allow_public_suffix = true"
	case err == errBlocks:
		p.Hint = "remove the line, or put it in a list of type block"
	case err == errAllow:
		p.Hint = "remove the line, or the entry that it should undo"
	case errors.As(err, new(errUntil)):
		p.Hint = untilHint
	}
	return p
}

// judged applies the list's type to an entry of a format that says whether it
// blocks or allows. In a block list an entry that allows is an exception; an allow
// list takes no others.
func (o *output) judged(e Entry, allows bool) (Entry, error) {
	if o.options.Allow && !allows {
		return e, errBlocks
	}
	e.Exception = allows && !o.options.Allow
	return e, nil
}

// wide parses a name that includes its subdomains, unless the list is exact.
func (o *output) wide(name string) (Entry, error) {
	if o.options.Exact {
		return domain(name, sender.KindAtDomain, o.options)
	}
	return domain(name, sender.KindDomain, o.options)
}

// exactly parses a name without its subdomains. It is checked like any other: a
// line that blocks "com" is a mistake.
func (o *output) exactly(name string) (Entry, error) {
	return domain(name, sender.KindAtDomain, o.options)
}

// starred parses a name that may begin with *. for its subdomains alone.
func (o *output) starred(name string, bare func(string) (Entry, error)) (Entry, error) {
	if below, ok := strings.CutPrefix(name, "*."); ok {
		return domain(below, sender.KindSubdomains, o.options)
	}
	return bare(name)
}

// commented gives an entry a comment: its reason and its expiry.
func commented(e Entry, comment string) (Entry, error) {
	reason, note, _ := strings.Cut(comment, "##")
	var err error
	e.Reason, e.Note, e.Until, err = splitUntil(strings.TrimSpace(reason), strings.TrimSpace(strings.TrimLeft(note, "#")))
	return e, err
}

// isClient reports whether s is an IP address, a prefix, a range, or the first
// octets of an address, as in lists of clients. A range ends in an address or in
// octets: 9-11commission.gov is a name.
func isClient(s string) bool {
	s, end, _ := strings.Cut(s, "-")
	if strings.Trim(end, "0123456789./") != "" && !isIPRange(end) {
		return false
	}
	if isIPRange(s) {
		return true
	}
	s, _, _ = strings.Cut(s, "/")
	octets := strings.Split(s, ".")
	for _, octet := range octets {
		if octet == "" || len(octet) > 3 || strings.Trim(octet, "0123456789") != "" {
			return false
		}
	}
	return len(octets) <= 4
}

// isSinkhole reports whether a list that maps a name to this address blocks the
// name. Other loopback addresses have another meaning: 127.0.1.1 is the host itself
// in Debian's hosts file.
func isSinkhole(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsUnspecified() || a == netip.IPv6Loopback() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
