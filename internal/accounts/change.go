package accounts

import "fmt"

// What a [Change] does.
const (
	DoAddUser     = "add user"
	DoSetPassword = "set password"
	DoSetRole     = "set role"
	DoRemove      = "remove user"
	DoAddToken    = "add token"
	DoRemoveToken = "remove token"
	DoEndSessions = "end sessions"
)

// Change is a call of the method of a Store, for those who ask a gate to make it.
type Change struct {
	Do       string   `json:"do"`
	Name     string   `json:"name"`
	Password string   `json:"password,omitempty"`
	Role     Role     `json:"role"`
	Domains  []string `json:"domains,omitempty"`
}

// Changed is what the method has returned.
type Changed struct {
	Secret string `json:"secret,omitempty"` // of a token
	Ended  int    `json:"ended,omitempty"`  // sessions
}

// Change makes a change.
func (s *Store) Change(c Change) (done Changed, err error) {
	switch c.Do {
	case DoAddUser:
		err = s.AddUser(c.Name, c.Password, c.Role, c.Domains)
	case DoSetPassword:
		err = s.SetPassword(c.Name, c.Password)
	case DoSetRole:
		err = s.SetRole(c.Name, c.Role, c.Domains)
	case DoRemove:
		err = s.Remove(c.Name)
	case DoAddToken:
		done.Secret, err = s.AddToken(c.Name, c.Role, c.Domains)
	case DoRemoveToken:
		err = s.RemoveToken(c.Name)
	case DoEndSessions:
		done.Ended, err = s.EndAll(c.Name)
	default:
		err = fmt.Errorf("unknown change of accounts %q", c.Do)
	}
	return done, err
}
