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

// unwrapSchemes are the values of [policy] unwrap.
var unwrapSchemes = []string{"srs", "batv"}

func (d *document) policy() {
	p := &d.cfg.Policy
	d.choices("policy.unwrap", p.Unwrap, unwrapSchemes)
	d.recipients("recipient_domains", p.RecipientDomains, RecipientDomain, DomainHint)
	d.recipients("valid_recipients", p.ValidRecipients, RecipientAddress, AddressHint)
	if len(p.ValidRecipients) > 0 && len(p.RecipientDomains) == 0 && !d.failedBelow("policy.recipient_domains") {
		d.fail("policy.valid_recipients", "needs recipient_domains, which says for which domains the recipients are all that exist",
			"write recipient_domains, or remove the line")
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

// Hints about what recipient_domains and valid_recipients may hold.
const (
	DomainHint  = `write "example.com" for that domain alone, ".example.com" for it and every subdomain`
	AddressHint = `write "user@example.com", or "@example.com" for every address at that domain`
)

// recipients normalises the elements of a key, or checks that a file is the only one.
func (d *document) recipients(key string, values []string, normal func(string) (string, error), hint string) {
	for i, s := range values {
		path := d.elementOrKey("policy."+key, i)
		if d.isFile(path, s, len(values), key) {
			continue
		}
		name, err := normal(s)
		if err != nil {
			d.fail(path, fmt.Sprintf("%q %v", s, err), hint)
		}
		values[i] = name
	}
	if _, ok := onlyFile(values); ok && slices.ContainsFunc(d.cfg.Lists, func(l List) bool { return l.Name == key }) {
		d.fail("policy."+key, fmt.Sprintf("its file has the name %q in commands and metrics, which is also the name of a list", key), "give the list another name")
	}
}

// isFile reports whether an element of a key begins with "file:". Such a one must name a file
// and be the only one of n.
func (d *document) isFile(path, s string, n int, key string) bool {
	file, ok := strings.CutPrefix(s, schemeFile)
	switch {
	case !ok:
		return false
	case n > 1:
		d.fail(path, fmt.Sprintf("%q is one of several elements, and a file must be the only one", s),
			fmt.Sprintf("put the others into the file, and write %s = %q", key, s))
	case file == "" || strings.HasSuffix(file, "/"):
		d.fail(path, fmt.Sprintf("%q does not name a file", s), fmt.Sprintf(`write %s = "file:/etc/spamgate/%s"`, key, key))
	}
	return true
}

// onlyFile returns the path of the file that takes the place of values.
func onlyFile(values []string) (path string, ok bool) {
	if len(values) != 1 {
		return "", false
	}
	return strings.CutPrefix(values[0], schemeFile)
}

// DomainsFile returns the path of the file with the recipient domains, if they are in one.
func (p *Policy) DomainsFile() (path string, ok bool) { return onlyFile(p.RecipientDomains) }

// RecipientsFile returns the path of the file with the valid recipients, if they are in one.
func (p *Policy) RecipientsFile() (path string, ok bool) { return onlyFile(p.ValidRecipients) }

// RecipientDomain normalises "example.com" or ".example.com". An error completes a sentence
// that begins with s.
func RecipientDomain(s string) (string, error) {
	if rest, ok := strings.CutPrefix(s, "."); ok {
		name, err := domainName(rest)
		return "." + name, err
	}
	return mailDomain(s)
}

var errNoEntry = errors.New("is not a recipient entry")

// RecipientAddress normalises "user@domain" or "@domain". An error is as that of
// RecipientDomain.
func RecipientAddress(s string) (string, error) {
	entry, err := recipientEntry(s)
	if err == errNoEntry || err == nil && strings.HasSuffix(entry, "@") {
		return "", errors.New("is not a mail address")
	}
	return entry, err
}

// recipientEntry normalises "user@", "user@domain" or "@domain".
func recipientEntry(s string) (string, error) {
	pos := strings.LastIndexByte(s, '@')
	if pos < 0 || s == "@" {
		return "", errNoEntry
	}
	local, domain := s[:pos], s[pos+1:]
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
