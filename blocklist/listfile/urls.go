package listfile

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

var (
	errPage    = unsupported{what: "a URL with a path or query, which names a page; its host may be shared", hint: "if the whole host is meant, write its URL without the path"}
	errNotURL  = errors.New("not a URL")
	errURLMail = errors.New("an address, and not a URL")
)

// urlsLine reads a line of a list of URLs.
func urlsLine(o *output, line int, text string) {
	s, reason, note := splitComment(strings.TrimLeft(text, " \t"))
	e, err := o.urlHost(trim(s))
	if err == nil {
		e.Reason, e.Note, e.Until, err = splitUntil(reason, note)
	}
	o.putURL(line, s, e, err)
}

// putURL passes on the entry of a URL, or reports why it has none.
func (o *output) putURL(line int, text string, e Entry, err error) {
	if err == errNotURL || err == errURLMail || err == errSpace {
		o.refuse(line, Problem{Text: text, What: err.Error(), Hint: "write one URL, such as https://example.com/"})
		return
	}
	o.put(line, text, e, err)
}

// urlHost parses a URL (RFC 3986), of which the scheme may be missing, as its host
// alone. The host ends where a browser ends it. User and port are ignored.
func (o *output) urlHost(s string) (Entry, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case strings.ContainsAny(s, " \t"):
		return Entry{}, errSpace
	case !ok:
		rest = strings.TrimPrefix(s, "//")
	case !isScheme(scheme):
		return Entry{}, errNotURL
	}
	host, page := rest, ""
	if pos := strings.IndexAny(rest, `/\?#`); pos >= 0 {
		host, page = rest[:pos], rest[pos:]
	}
	if pos := strings.LastIndexByte(host, '@'); pos >= 0 {
		if !ok {
			return Entry{}, errURLMail
		}
		host = host[pos+1:]
	}
	if name, port, ok := strings.Cut(host, ":"); ok && strings.Trim(port, "0123456789") == "" {
		host = name
	}
	host, err := url.PathUnescape(host)
	switch {
	case host == "" || err != nil:
		return Entry{}, errNotURL
	case isClient(host), isClientHost(host):
		return Entry{}, errClient
	case page != "" && page != "/":
		return Entry{}, errPage
	}
	return o.exactly(host)
}

// isScheme reports whether s is the scheme of a URL.
func isScheme(s string) bool {
	if s == "" || !isLetter(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isLetter(s[i]) && !isDigit(s[i]) && strings.IndexByte("+-.", s[i]) < 0 {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isClientHost reports whether the host of a URL is an IP address in any of its forms.
func isClientHost(host string) bool {
	if literal, ok := strings.CutPrefix(host, "["); ok {
		literal, _, _ = strings.Cut(literal, "]")
		_, err := netip.ParseAddr(literal)
		return err == nil
	}
	_, err := hostAddress(strings.TrimSuffix(host, "."))
	return err == nil
}
