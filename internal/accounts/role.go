package accounts

import (
	"fmt"
	"slices"
	"strings"
)

// Role says what an account may do. Each role may also do what the roles before it may.
type Role int

const (
	Viewer   Role = iota // sees
	Helpdesk             // lets senders in, for at most a day
	Editor               // edits the entries of managed lists
	Admin                // decides what is live, and ends sessions of others
)

// Roles holds the names of the roles, from the one that may least.
var Roles = []string{"viewer", "helpdesk", "editor", "admin"}

// String returns the name of the role.
func (r Role) String() string {
	if r < 0 || int(r) >= len(Roles) {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return Roles[r]
}

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, error) {
	i := slices.Index(Roles, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown role %q: use %s", name, strings.Join(Roles, ", "))
	}
	return Role(i), nil
}

// MarshalText returns the name of the role.
func (r Role) MarshalText() ([]byte, error) {
	if _, err := ParseRole(r.String()); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText parses the name of a role.
func (r *Role) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRole(string(text))
	return err
}
