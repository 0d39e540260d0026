package logging

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/minio/highwayhash"
)

// The ways in which a Redactor shows addresses.
const (
	AddressesFull   = "full"
	AddressesDomain = "domain"
	AddressesHash   = "hash"
)

// Redactor hides mail addresses in logs as configured. The zero value shows them as
// they are. It is safe for concurrent use.
type Redactor struct {
	mode string
	key  []byte // of AddressesHash
}

// NewRedactor returns a Redactor of one of these modes; empty means AddressesFull.
// For AddressesHash it reads the secret from the file "key" in the state directory,
// and makes both if they are missing. Other modes do not use the directory.
func NewRedactor(mode, stateDir string) (*Redactor, error) {
	switch mode {
	case "", AddressesFull, AddressesDomain:
		return &Redactor{mode: mode}, nil
	case AddressesHash:
		key, err := loadKey(stateDir)
		if err != nil {
			return nil, fmt.Errorf("key for hashed addresses: %w", err)
		}
		return &Redactor{mode: mode, key: key}, nil
	}
	return nil, fmt.Errorf("address format %q is not known; use %q, %q or %q", mode, AddressesFull, AddressesDomain, AddressesHash)
}

// Address returns an address as the log shows it:
//
//   - AddressesFull: the address as it is;
//   - AddressesDomain: "*@" and the domain, or "*" without a domain;
//   - AddressesHash: 16 hexadecimal digits, HighwayHash-64 of the address in
//     lower case without "<>" around it. With the same key the same address has
//     the same digits, and without the key nobody can compute them from a guess.
//
// The null sender, "" or "<>", is never hidden.
func (r *Redactor) Address(address string) string {
	if address == "" || address == "<>" {
		return address
	}
	switch r.mode {
	case AddressesDomain:
		bare := trimBrackets(address)
		if pos := strings.LastIndexByte(bare, '@'); pos >= 0 {
			return "*" + bare[pos:]
		}
		return "*"
	case AddressesHash:
		return fmt.Sprintf("%016x", highwayhash.Sum64([]byte(strings.ToLower(trimBrackets(address))), r.key))
	}
	return address
}

// hidden is what Address returns in place of an address.
var hidden = regexp.MustCompile(`^(\*|\*@.*|[0-9a-f]{16})$`)

// Hidden reports whether a text, without brackets, is what a log shows in place of an address.
func Hidden(shown string) bool { return hidden.MatchString(shown) }

func trimBrackets(s string) string {
	if strings.HasPrefix(s, "<") && strings.HasSuffix(s, ">") {
		return s[1 : len(s)-1]
	}
	return s
}
