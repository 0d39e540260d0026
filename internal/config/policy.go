package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
)

// maxReplyText bounds the contact and the template of a refusal, in bytes. A
// reply line has at most 512 (RFC 5321, section 4.5.3.1.5), and must also hold the
// reason, of at most 200.
const maxReplyText = 200

// placeholders of [policy] reject_text.
var placeholders = []string{"sender", "list", "reason", "id", "contact"}

func (d *document) policy() {
	p := &d.cfg.Policy
	for i, s := range p.RecipientDomains {
		name, err := recipientDomain(s)
		if err != nil {
			d.fail(element("policy.recipient_domains", i), fmt.Sprintf("%q %v", s, err),
				`write "example.com" for that domain alone, ".example.com" for it and every subdomain`)
		}
		p.RecipientDomains[i] = name
	}
	for i, s := range p.ExemptRecipients {
		entry, err := recipientEntry(s)
		if err != nil {
			d.fail(element("policy.exempt_recipients", i), fmt.Sprintf("%q %v", s, err),
				`write "user@" for that name at any domain, "user@example.com" or "@example.com"`)
		}
		p.ExemptRecipients[i] = entry
	}
	if err := checkReplyText(p.Contact); err != nil {
		d.fail("policy.contact", err.Error(), `write something short, such as "help at https://example.com/mail", or "" for none`)
	}
	if err := checkTemplate(p.RejectText); err != nil {
		d.fail("policy.reject_text", err.Error(), "the placeholders are {"+strings.Join(placeholders, "}, {")+"}")
	}
}

// recipientDomain normalises "example.com" or ".example.com".
func recipientDomain(s string) (string, error) {
	if rest, ok := strings.CutPrefix(s, "."); ok {
		name, err := domainName(rest)
		return "." + name, err
	}
	return mailDomain(s)
}

var errNoEntry = errors.New("is not a recipient entry")

// recipientEntry normalises "user@", "user@domain" or "@domain".
func recipientEntry(s string) (string, error) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || s == "@" {
		return "", errNoEntry
	}
	local, domain := s[:at], s[at+1:]
	var err error
	if local != "" {
		if local, err = sender.NormalizeLocal(local); err != nil {
			return "", errNoEntry
		}
	}
	if domain != "" {
		if domain, err = mailDomain(domain); err != nil {
			return "", fmt.Errorf("has a domain which %w", err)
		}
	}
	return local + "@" + domain, nil
}

// checkReplyText checks text for a reply line.
func checkReplyText(s string) error {
	if len(s) > maxReplyText {
		return fmt.Errorf("has %d bytes, more than the %d that fit into a reply", len(s), maxReplyText)
	}
	for _, r := range s {
		if r < ' ' || r > '~' {
			return fmt.Errorf("contains %q, but a reply is printable ASCII on one line", r)
		}
	}
	return nil
}

var braces = regexp.MustCompile(`\{[^{}]*\}|[{}]`)

// checkTemplate checks the text of a refusal.
func checkTemplate(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty")
	}
	for _, b := range braces.FindAllString(s, -1) {
		if len(b) == 1 {
			return fmt.Errorf("has an unmatched %q", b)
		}
		if !slices.Contains(placeholders, b[1:len(b)-1]) {
			return fmt.Errorf("has the unknown placeholder %s", b)
		}
	}
	return checkReplyText(s)
}
