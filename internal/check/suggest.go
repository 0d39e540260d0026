package check

import (
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/smtpfilter/header"
)

// SuggestAddress returns a hint which address to check if a domain was given alone, or else
// "". A text with "%" or "!" is a form that servers complete, see suggestForm.
func SuggestAddress(domain string) string {
	a, err := sender.Parse("x@" + domain)
	if err != nil || a.Domain() == "" || strings.ContainsAny(domain, "@%!") || !strings.Contains(domain, ".") {
		return ""
	}
	return "; to ask about the domain, give x@" + domain
}

// suggestForm returns a hint how servers complete a header that holds only this text, or "".
func suggestForm(text string) string {
	found := header.Senders([]byte("From: "+text), []string{"From"})
	if len(found.Senders) > 0 || len(found.Forms) != 1 {
		return ""
	}
	var readings []string
	for _, r := range found.Forms[0].Readings() {
		if !strings.HasSuffix(r, "@") {
			readings = append(readings, r)
		}
	}
	if len(readings) == 0 {
		return ""
	}
	return "; in a header servers may read it as " + strings.Join(readings, " or ") + ": ask about that, or see check --message"
}
