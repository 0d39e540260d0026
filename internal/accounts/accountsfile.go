package accounts

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// accountsName is the file with users and tokens.
const accountsName = "accounts.json"

const maxAccounts = 10_000

// accountsFile is the content of the file.
type accountsFile struct {
	Version int     `json:"version"`
	Users   []user  `json:"users"`
	Tokens  []token `json:"tokens"`

	byName   map[string]*user
	byDigest map[string]*token
}

type user struct {
	Name    string   `json:"name"`
	Role    Role     `json:"role"`
	Domains []string `json:"domains,omitempty"`

	Password *passwordHash `json:"password,omitempty"` // nil: only through a proxy

	// Epoch changes with the password, the role and the domains. A session counts while
	// its user has the epoch of its beginning.
	Epoch string `json:"epoch"`

	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
}

type token struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Domains []string  `json:"domains,omitempty"`
	Digest  string    `json:"sha256"` // of the secret
	Created time.Time `json:"created"`
}

func (u *user) account() Account {
	return Account{Name: u.Name, Role: u.Role, Domains: u.Domains, Password: u.Password != nil, Created: u.Created, Changed: u.Changed}
}

func (t *token) account() Account {
	return Account{Name: t.Name, Role: t.Role, Domains: t.Domains, Token: true, Created: t.Created, Changed: t.Created}
}

// clone returns a copy that can be changed.
func (f *accountsFile) clone() *accountsFile {
	return &accountsFile{Version: fileVersion, Users: slices.Clone(f.Users), Tokens: slices.Clone(f.Tokens)}
}

// check implements content. Names are unique among users and tokens, so that the audit log
// says who it was.
func (f *accountsFile) check() error {
	f.byName, f.byDigest = map[string]*user{}, map[string]*token{}
	names := map[string]bool{}
	for i := range f.Users {
		u := &f.Users[i]
		if err := checkAccount(names, u.Name, u.Domains); err != nil {
			return err
		}
		if u.Epoch == "" {
			return fmt.Errorf("the user %q has no epoch", u.Name)
		}
		f.byName[u.Name] = u
	}
	for i := range f.Tokens {
		t := &f.Tokens[i]
		if err := checkAccount(names, t.Name, t.Domains); err != nil {
			return err
		}
		if err := checkDigest(t.Digest); err != nil || f.byDigest[t.Digest] != nil {
			return fmt.Errorf("the token %q has an invalid sha256", t.Name)
		}
		f.byDigest[t.Digest] = t
	}
	if len(names) > maxAccounts {
		return fmt.Errorf("%d accounts, more than %d", len(names), maxAccounts)
	}
	return nil
}

// checkAccount checks what users and tokens share, and adds the name to names.
func checkAccount(names map[string]bool, name string, domains []string) error {
	if normal, err := ParseName(name); err != nil || normal != name {
		return fmt.Errorf("%q is not an account's name", name)
	}
	if names[name] {
		return fmt.Errorf("the account %q is there twice", name)
	}
	names[name] = true
	// An array without elements must not become "all domains".
	if normal, err := ParseDomains(domains); err != nil || !slices.Equal(normal, domains) || domains != nil && len(domains) == 0 {
		return fmt.Errorf("the account %q has invalid domains", name)
	}
	return nil
}

// checkDigest checks a hash of a secret.
func checkDigest(s string) error {
	sum, err := hex.DecodeString(s)
	if err != nil || len(sum) != digestBytes || s != strings.ToLower(s) {
		return errors.New("not a SHA-256")
	}
	return nil
}
