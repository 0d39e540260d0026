package accounts

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/sender"
)

// Account is a user or a token.
type Account struct {
	Name string `json:"name"`
	Role Role   `json:"role"`

	// Domains, if not nil, are the recipient domains that the account is bound to, in
	// lower case with A-labels, without their subdomains. It sees and edits nothing else.
	Domains []string `json:"domains,omitempty"`

	Token bool `json:"token,omitempty"` // else a user

	// Password reports whether a user has one. One without logs in only through a proxy.
	Password bool `json:"password"`

	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"` // the password, role or domains

	LastLogin *time.Time `json:"last_login,omitempty"` // set by List, for users with a password
}

// MaySee reports whether the account may see mail to a recipient: an address, or
// "@domain".
func (a Account) MaySee(recipient string) bool {
	if a.Domains == nil {
		return true
	}
	domain, ok := strings.CutPrefix(recipient, "@")
	if ok {
		normal, err := sender.NormalizeDomain(domain)
		return err == nil && slices.Contains(a.Domains, normal)
	}
	address, err := sender.Parse(recipient)
	return err == nil && slices.Contains(a.Domains, address.Domain())
}

const (
	maxName    = 100
	maxDomains = 1000
)

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]*$`)

// ParseName returns the normal form of an account's name: it is in lower case.
func ParseName(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("the name is empty")
	case len(name) > maxName:
		return "", fmt.Errorf("a name of more than %d characters", maxName)
	case !namePattern.MatchString(name):
		return "", fmt.Errorf(`invalid name %q: use letters a-z, digits, ".", "_", "-" and "@", first a letter or digit`, name)
	}
	return strings.ToLower(name), nil
}

// ParseDomains returns the normal form of the domains that an account is bound to: sorted,
// each once, nil for none.
func ParseDomains(domains []string) ([]string, error) {
	var normal []string
	for _, d := range domains {
		n, err := sender.NormalizeDomain(strings.TrimPrefix(d, "@"))
		if err != nil {
			return nil, fmt.Errorf("invalid domain %q: %w", d, err)
		}
		normal = append(normal, n)
	}
	slices.Sort(normal)
	normal = slices.Compact(normal)
	if len(normal) > maxDomains {
		return nil, fmt.Errorf("%d domains: an account is bound to at most %d", len(normal), maxDomains)
	}
	return normal, nil
}
