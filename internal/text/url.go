package text

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// hidden stands for a part of a URL that may be a secret.
const hidden = "..."

// ShownURL returns a URL for logs and errors, without what may be a password or a
// token: the user, the fragment, the values of the query, and the elements of the path
// that look like tokens. "..." stands for them. It also works for a text that is not a
// valid URL.
func ShownURL(s string) string {
	_, err := url.Parse(s)
	s, _, fragment := strings.Cut(s, "#")
	s, _, query := strings.Cut(s, "?")
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "", s
	} else {
		scheme += "://"
	}
	host, path, slash := strings.Cut(rest, "/")
	if err != nil && strings.Contains(rest, "@") { // a "/" in the password, for example
		host, path, slash = strings.Cut(rest[strings.LastIndexByte(rest, '@')+1:], "/")
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	elements := strings.Split(path, "/")
	for i, e := range elements {
		if looksSecret(e) || i > 0 && secretWord.MatchString(elements[i-1]) {
			elements[i] = hidden
		}
	}
	s = scheme + host
	if slash {
		s += "/" + strings.Join(elements, "/")
	}
	if query {
		s += "?" + hidden
	}
	if fragment {
		s += "#" + hidden
	}
	return s
}

// ShownZone returns the name of a DNS zone for logs and errors, with "..." for labels that may
// be the key of a customer.
func ShownZone(zone string) string {
	labels := strings.Split(zone, ".")
	for i, label := range labels {
		if looksSecret(label) {
			labels[i] = hidden
		}
	}
	return strings.Join(labels, ".")
}

var urlInText = regexp.MustCompile(`(?i)https?://[^\s"'<>` + "`" + `]+`)

// HideSecrets returns a text with [ShownURL] of each web URL in it.
func HideSecrets(s string) string {
	return urlInText.ReplaceAllStringFunc(s, func(found string) string {
		pos := len(strings.TrimRight(found, ".,;:)")) // of the sentence around the URL
		shown, after := ShownURL(found[:pos]), found[pos:]
		if strings.HasSuffix(shown, hidden) {
			after = strings.TrimPrefix(after, hidden) // it was hidden before
		}
		return shown + after
	})
}

var (
	// secretWord matches an element of a path before a token.
	secretWord = regexp.MustCompile(`(?i)^(access|api|auth|feed)?[-_]?(token|key|secret|auth|apikey|password|passwd)s?$`)

	// secretPart matches an element with a token in it, as in "token=abc".
	secretPart = regexp.MustCompile(`(?i)(token|key|secret|auth|password|passwd)[^A-Za-z0-9]+[A-Za-z0-9]`)
)

const (
	longToken    = 20 // letters and digits in a row that no name has
	mixedToken   = 10 // the least length of a token of letters mixed with digits
	mixedChanges = 3  // changes between the two, or from a small letter to a capital
)

// looksSecret reports whether an element of a path looks like a token: long without
// a break, or mixed of letters and digits.
func looksSecret(element string) bool {
	if secretPart.MatchString(element) {
		return true
	}
	run, changes := 0, 0
	before := '-'
	for _, r := range element {
		letter, digit := unicode.IsLetter(r), unicode.IsDigit(r)
		if !letter && !digit {
			run, before = 0, '-'
			continue
		}
		if run++; run >= longToken {
			return true
		}
		switch {
		case before == '-':
		case unicode.IsDigit(before) != digit, unicode.IsLower(before) && unicode.IsUpper(r):
			changes++
		}
		before = r
	}
	return len(element) >= mixedToken && changes >= mixedChanges
}
