package listfile

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"
)

// hints say what to do about an error, for any text.
var hints = []struct {
	err  error
	hint string
}{
	{errAllow, "an allow list cannot block; remove the line, or the entry that it should cancel"},
	{errEverything, "name a domain, or write user@ for a local part at any domain"},
	{errWildcard, "a * is allowed only in *@example.com and *.example.com; quote a local part that contains one"},
	{errIP, noClients + "; an address literal is written @[192.0.2.1]"},
	{errSpace, "write one entry a line; a comment starts with #"},
	{errSuffixAlone, "write @ in front if that very domain is meant, or set allow_public_suffix = true"},
	{errSuffix, "list the domains below it, write @ in front for that domain alone, or set allow_public_suffix = true"},
	{errForeign('#'), "a comment needs white space before its #"},
}

// explain makes the Problem for a text that is not an entry.
func explain(text string, o Options, err error) Problem {
	p := Problem{Text: text}
	text = trim(text)
	switch {
	case !utf8.ValidString(text):
		p.Hint = "save the file as UTF-8"
	case strings.ContainsRune(text, utf8.RuneError):
		p.Hint = "a character was lost; write it again and save the file as UTF-8"
	case isClient(text), isService(text), err == errIP:
		err, p.Unsupported = errIP, true
	case len(text) > 1 && text[0] == '/' && text[1] != '/':
		err, p.Hint, p.Unsupported = errRegexp, errRegexp.hint, true
	case len(words(text)) > 1:
		err = errSpace
	case err == errSingleLabel, err == errLabelAlone:
		p.Hint = fmt.Sprintf("write %s@ for that local part at any domain, @%[1]s for that domain alone, or set allow_public_suffix = true",
			strings.Trim(text, "<!*.>"))
	}
	p.What = err.Error()
	if p.Hint != "" {
		return p
	}
	if errors.As(err, new(errUntil)) {
		p.Hint = untilHint
		return p
	}
	for _, h := range hints {
		if errors.Is(err, h.err) {
			p.Hint = h.hint
		}
	}
	if s := suggest(text, o); s != "" {
		p.Hint = "write " + s
	}
	return p
}

// isService reports whether s is an IP address with a port.
func isService(s string) bool {
	_, err := netip.ParseAddrPort(s)
	return err == nil
}

// isIPRange reports whether s is an IP address or a prefix.
func isIPRange(s string) bool {
	_, errAddr := netip.ParseAddr(s)
	_, errPrefix := netip.ParsePrefix(s)
	return errAddr == nil || errPrefix == nil
}

// words splits s at white space outside quotes.
func words(s string) []string {
	quoted := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\t' || r == nbsp)
	})
}

const nbsp = '\u00A0'

// suggest returns the entry that was probably meant: the first of the usual
// corrections that makes text valid, or "".
func suggest(text string, o Options) string {
	text, exception := strings.CutPrefix(text, "!")
	if exception && o.Allow {
		return ""
	}
	text = trim(text)
	for _, correct := range corrections {
		s := correct(text)
		if s == text || s == "" {
			continue
		}
		if _, err := parseEntry(s, o); err == nil {
			if exception {
				s = "!" + s
			}
			return s
		}
	}
	return ""
}

// corrections remove what other formats put around an address. Each returns "" or
// its argument if it does not apply.
var corrections = []func(string) string{
	fromHosts,
	fromName,
	fromURL,
	fromWildcard,
	fromLiteral,
	firstWord,
	beforeHash,
	fromPercent,
	bare,
}

// fromHosts corrects a line of a hosts file: "0.0.0.0 example.com".
func fromHosts(s string) string {
	w := words(s)
	if len(w) < 2 || !isIPRange(w[0]) {
		return ""
	}
	return w[1]
}

// fromName corrects "A User <user@example.com>".
func fromName(s string) string {
	_, rest, _ := strings.Cut(s, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}

// fromURL corrects "https://example.com:8080/path" and parts of it, and
// "mailto:user@example.com".
func fromURL(s string) string {
	if _, host, ok := strings.Cut(s, "://"); ok {
		s = host
	}
	s = strings.TrimPrefix(s, "mailto:")
	s, _, _ = strings.Cut(s, "/")
	s, _, _ = strings.Cut(s, ":")
	return s
}

// fromWildcard corrects wildcards that the grammar does not have.
func fromWildcard(s string) string {
	for _, prefix := range []string{"*@", "@"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "*.")) {
			return rest
		}
	}
	if local, ok := strings.CutSuffix(s, "@*"); ok {
		return local + "@"
	}
	if rest, ok := strings.CutPrefix(s, "*"); ok && !strings.Contains(s, "@") {
		return "." + rest
	}
	return ""
}

// fromLiteral corrects an address literal without its @.
func fromLiteral(s string) string {
	if strings.HasPrefix(s, "[") {
		return "@" + s
	}
	return ""
}

// firstWord corrects "example.com REJECT" and "example.com, example.net".
func firstWord(s string) string {
	w := words(s)
	if len(w) < 2 || strings.HasSuffix(w[0], "@") || strings.HasPrefix(w[1], "@") {
		return "" // a name without its domain would match far more
	}
	return bare(w[0])
}

// beforeHash corrects "example.com#comment".
func beforeHash(s string) string {
	before, _, _ := strings.Cut(s, "#")
	return before
}

// fromPercent corrects "b%C3%BCcher.example", from a URL.
func fromPercent(s string) string {
	decoded, err := url.PathUnescape(s)
	if err != nil || !utf8.ValidString(decoded) {
		return ""
	}
	return decoded
}

// bare removes punctuation around an entry: 'example.com', ||example.com^
func bare(s string) string {
	return strings.Trim(s, "\"'`,;:|^~()[]{}<>/"+string(nbsp))
}
