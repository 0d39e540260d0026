package smtpfilter

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// Settings apply to the clients of a Listener and may change while it serves. A message
// keeps the settings of its MAIL, a connection those of its beginning. Checker and NextHop
// are required; the zero value of every other field is its default.
type Settings struct {
	// Checker judges the senders.
	Checker verdict.Checker

	// NextHop receives accepted mail.
	NextHop nexthop.Target

	// Signatures verifies DKIM signatures, if a verdict depends on them. Without it, none is
	// valid.
	Signatures SignatureVerifier

	// Memory remembers which recipients of a message an LMTP next hop has refused.
	// Without it, the other recipients may get the message twice.
	Memory Memory

	// Policy says which senders are judged, and what a refusal says.
	Policy Policy

	wire.Rules

	// RejectPregreet refuses clients that talk before the greeting.
	RejectPregreet bool

	// Normalize selects the clients whose bare newlines are corrected, not refused.
	Normalize func(client netip.Addr) bool

	// TLS makes the listener a TLS server, as TLSMode says.
	TLS     *tls.Config
	TLSMode wire.TLSMode

	// NoNames disables the lookup of client names.
	NoNames bool

	// PassAuth passes AUTH on to the next hop, if it is a nexthop.Authenticator.
	PassAuth bool

	// RequireAuth refuses mail before a login: see wire.Config.AuthRequired. It needs
	// PassAuth.
	RequireAuth bool

	// Limiter bounds what a client may do; nil means no limits.
	Limiter *limit.Limiter

	// Tarpit bounds how many refusals are delayed at a time; nil delays none.
	Tarpit *limit.Tarpit
}

// Validate checks the settings and normalizes the Policy; see Policy.Validate. Listen and
// Apply call it.
func (s *Settings) Validate() error {
	var errs []error
	if s.Checker == nil {
		errs = append(errs, errors.New("smtpfilter.Settings.Checker is nil: set it to what judges the senders"))
	}
	if s.NextHop == nil {
		errs = append(errs, errors.New("smtpfilter.Settings.NextHop is nil: set it to where accepted mail goes"))
	}
	if s.TLS == nil && s.TLSMode != wire.TLSOffered {
		errs = append(errs, errors.New("smtpfilter.Settings.TLSMode requires TLS, and Settings.TLS is nil: set it to a configuration with a certificate"))
	}
	if s.RequireAuth && !s.PassAuth {
		errs = append(errs, errors.New("smtpfilter.Settings.RequireAuth requires PassAuth, without which nobody can log in: set both"))
	}
	negative := s.Rules.Negative()
	for name, value := range map[string]int64{
		"MaxHeaderBytes": int64(s.Policy.MaxHeaderBytes), "MaxAddresses": int64(s.Policy.MaxAddresses), "MaxFieldBytes": int64(s.Policy.MaxFieldBytes),
		"MaxHops": int64(s.Policy.MaxHops), "MaxRecipients": int64(s.Policy.MaxRecipients), "Tarpit": int64(s.Policy.Tarpit),
	} {
		if value < 0 {
			negative = append(negative, "Policy."+name)
		}
	}
	slices.Sort(negative)
	for _, name := range negative {
		errs = append(errs, fmt.Errorf("smtpfilter.Settings.%s is negative: set it to 0 for the default, or to a positive value", name))
	}
	return errors.Join(append(errs, s.Policy.Validate())...)
}

// Validate checks the names in the policy, and replaces domains and recipients by their
// normal form: lower case, A-labels, no trailing dot. It does not change the caller's
// slices.
func (p *Policy) Validate() error {
	var errs []error
	for _, name := range p.HeaderFields {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) {
			errs = append(errs, fmt.Errorf("smtpfilter.Policy.HeaderFields: %q is not the name of a header field: write it without colon and spaces, such as %q", name, "From"))
		}
	}
	normalize := func(key string, values *[]string, normal func(string) (string, error), remedy string) {
		result := slices.Clone(*values)
		for i, v := range result {
			n, err := normal(v)
			if err != nil {
				errs = append(errs, fmt.Errorf("smtpfilter.Policy.%s: %q: %w; %s", key, v, err, remedy))
				n = v
			}
			result[i] = n
		}
		*values = result
	}
	normalize("RecipientDomains", &p.RecipientDomains, normalRecipientDomain, `write "example.com", or ".example.com" for its subdomains too`)
	normalize("ExemptRecipients", &p.ExemptRecipients, normalRecipient, `write "user@", "user@example.com" or "@example.com"`)
	p.domains = NewDomainSet(p.RecipientDomains)
	return errors.Join(errs...)
}

// normalRecipientDomain returns the normal form of "example.com" or ".example.com".
func normalRecipientDomain(s string) (string, error) {
	rest, subdomains := strings.CutPrefix(s, ".")
	domain, err := sender.NormalizeDomain(rest)
	if subdomains {
		domain = "." + domain
	}
	return domain, err
}

// normalRecipient returns the normal form of "user@", "user@domain" or "@domain".
func normalRecipient(s string) (string, error) {
	pos := strings.LastIndexByte(s, '@')
	if pos < 0 || s == "@" {
		return "", errors.New("not a recipient")
	}
	local, domain := s[:pos], s[pos+1:]
	var localErr, domainErr error
	if local != "" {
		local, localErr = sender.NormalizeLocal(local)
	}
	if domain != "" {
		domain, domainErr = sender.NormalizeDomain(domain)
	}
	return local + "@" + domain, errors.Join(localErr, domainErr)
}

// wireConfig returns the wire's configuration, with the hooks of the listener.
func (l *Listener) wireConfig(s *Settings) wire.Config {
	cfg := wire.Config{
		Rules:          s.Rules,
		Hostname:       l.server.cfg.Hostname,
		MaxRecipients:  s.Policy.maxRecipients(),
		TLS:            s.TLS,
		TLSMode:        s.TLSMode,
		RejectPregreet: s.RejectPregreet,
		Normalize:      s.Normalize,
		AuthRequired:   s.RequireAuth,

		Extensions:   func(*wire.Conn) wire.Extensions { return l.settings.Load().NextHop.Extensions() },
		Connected:    l.connected,
		Erred:        l.erred,
		Closed:       l.closed,
		Refused:      l.logBadCommand,
		Noticed:      l.logNoticed,
		AcceptFailed: l.logAcceptFailed,
	}
	if l.server.cfg.ID != "" {
		cfg.Path = l.path
	}
	if s.PassAuth {
		cfg.Auth = l.authenticate
	}
	return cfg
}
