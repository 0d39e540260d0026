package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/atomicfile"
)

// The errors of a Store. Use errors.Is.
var (
	ErrDamaged   = errors.New("this file is damaged, so that nobody can log in: restore it, or remove it and add the accounts again")
	ErrNoAccount = errors.New("there is no account of that name")
	ErrExists    = errors.New("there is an account of that name")
	ErrNoAdmin   = errors.New("no user would be an admin for all domains, and the fleet never takes that: make another user one first")
)

// Store is a directory with accounts and sessions. Its methods are safe for concurrent use.
type Store struct {
	tree     atomicfile.Tree
	accounts jsonFile[accountsFile, *accountsFile]
	sessions jsonFile[sessionsFile, *sessionsFile]

	changing sync.Mutex // in this process; the lock of the directory is for all of them
	fleet    Fleet      // nil: the accounts are only here
	limits   *limits
	hasher   hasher
	cost     cost
	now      func() time.Time

	right, wrong, limited atomic.Uint64 // attempts to log in
}

// Open returns the Store of a directory, which the first account makes. It reads nothing: use
// Check.
func Open(dir string) *Store { return open(dir, usualCost, time.Now) }

func open(dir string, c cost, now func() time.Time) *Store {
	tree := atomicfile.In(dir)
	s := &Store{tree: tree, cost: c, now: now, limits: newLimits(now), hasher: hasher{busy: make(chan struct{}, 1)}}
	s.accounts.tree, s.accounts.name = tree, accountsName
	s.sessions.tree, s.sessions.name = tree, sessionsName
	return s
}

// Close closes the files. No other method may be in use.
func (s *Store) Close() {
	s.accounts.close()
	s.sessions.close()
}

// Check returns the number of accounts, or why nobody can log in.
func (s *Store) Check() (accounts int, err error) {
	a, err := s.accounts.read()
	if err != nil {
		return 0, err
	}
	if _, err := s.sessions.read(); err != nil {
		return 0, err
	}
	return len(a.Users) + len(a.Tokens), nil
}

// lock keeps others from changing the files, in this process and in others.
func (s *Store) lock() (unlock func(), err error) {
	s.changing.Lock()
	release, err := s.tree.Lock(".")
	if err != nil {
		s.changing.Unlock()
		return nil, err
	}
	return func() {
		release()
		s.changing.Unlock()
	}, nil
}

// change changes the accounts, on all gates if they are shared. What is the change in words.
func (s *Store) change(what string, edit func(*accountsFile) error) error {
	if s.shared() {
		return s.changeShared(what, edit)
	}
	return s.changeFile(edit, func(_, stored *accountsFile) error { return s.accounts.write(stored) })
}

// changeFile makes a change, which write writes, while nobody else changes the accounts.
func (s *Store) changeFile(edit func(*accountsFile) error, write func(old, stored *accountsFile) error) error {
	unlock, err := s.makeAndLock()
	if err != nil {
		return err
	}
	defer unlock()
	old, err := s.accounts.read()
	if err != nil {
		return err
	}
	stored := old.clone()
	if err := edit(stored); err != nil {
		return err
	}
	_ = s.tree.RemoveStale(".", temporary, time.Hour) // of killed processes
	return write(old, stored)
}

// makeAndLock is lock for a directory that may be missing.
func (s *Store) makeAndLock() (unlock func(), err error) {
	if err := s.tree.Make(); err != nil {
		return nil, err
	}
	return s.lock()
}

// AddUser adds a user. Without a password only a proxy can log the user in. Without domains
// the user is bound to none.
func (s *Store) AddUser(name, password string, role Role, domains []string) error {
	name, domains, err := checkNew(name, role, domains)
	if err != nil {
		return err
	}
	hash, err := s.hashNew(name, password)
	if err != nil {
		return err
	}
	return s.change(fmt.Sprintf("added the user %s, %s", name, role), func(f *accountsFile) error {
		if f.has(name) {
			return fmt.Errorf("%w: %s", ErrExists, name)
		}
		now := s.now().UTC()
		f.Users = append(f.Users, user{Name: name, Role: role, Domains: domains, Password: hash, Epoch: newSecret(), Created: now, Changed: now})
		return nil
	})
}

// checkNew returns the normal forms of what a new account has.
func checkNew(name string, role Role, domains []string) (string, []string, error) {
	name, err := ParseName(name)
	if err != nil {
		return "", nil, err
	}
	if _, err := role.MarshalText(); err != nil {
		return "", nil, err
	}
	domains, err = ParseDomains(domains)
	return name, domains, err
}

// hashNew returns the hash of a new password, nil for none.
func (s *Store) hashNew(name, password string) (*passwordHash, error) {
	if password == "" {
		return nil, nil
	}
	normal, err := normalPassword(name, password)
	if err != nil {
		return nil, err
	}
	if err := s.hasher.enter(context.Background()); err != nil {
		return nil, err
	}
	defer s.hasher.leave()
	hash := newHash(normal, s.cost)
	return &hash, nil
}

// SetPassword changes the password of a user, and ends the user's sessions. Without a
// password only a proxy can log the user in.
func (s *Store) SetPassword(name, password string) error {
	name, err := ParseName(name)
	if err != nil {
		return err
	}
	hash, err := s.hashNew(name, password)
	if err != nil {
		return err
	}
	return s.changeUser(name, "changed the password of "+name, func(u *user) { u.Password = hash })
}

// SetRole changes the role and domains of a user, and ends the user's sessions.
func (s *Store) SetRole(name string, role Role, domains []string) error {
	name, domains, err := checkNew(name, role, domains)
	if err != nil {
		return err
	}
	return s.changeUser(name, fmt.Sprintf("%s is now %s", name, role), func(u *user) { u.Role, u.Domains = role, domains })
}

func (s *Store) changeUser(name, what string, edit func(*user)) error {
	return s.change(what, func(f *accountsFile) error {
		i := slices.IndexFunc(f.Users, func(u user) bool { return u.Name == name })
		if i < 0 {
			return noAccount("user", name)
		}
		edit(&f.Users[i])
		f.Users[i].Epoch, f.Users[i].Changed = newSecret(), s.now().UTC()
		return nil
	})
}

// Remove removes a user and ends the user's sessions.
func (s *Store) Remove(name string) error {
	name, err := ParseName(name)
	if err != nil {
		return err
	}
	return s.change("removed the user "+name, func(f *accountsFile) error {
		n := len(f.Users)
		if f.Users = slices.DeleteFunc(f.Users, func(u user) bool { return u.Name == name }); len(f.Users) == n {
			return noAccount("user", name)
		}
		return nil
	})
}

// AddToken adds a token and returns its secret, which cannot be had again.
func (s *Store) AddToken(name string, role Role, domains []string) (secret string, err error) {
	name, domains, err = checkNew(name, role, domains)
	if err != nil {
		return "", err
	}
	secret = newSecret()
	err = s.change(fmt.Sprintf("added the token %s, %s", name, role), func(f *accountsFile) error {
		if f.has(name) {
			return fmt.Errorf("%w: %s", ErrExists, name)
		}
		f.Tokens = append(f.Tokens, token{Name: name, Role: role, Domains: domains, Digest: sumOf(secret), Created: s.now().UTC()})
		return nil
	})
	if err != nil {
		return "", err
	}
	return tokenPrefix + secret, nil
}

// RemoveToken removes a token.
func (s *Store) RemoveToken(name string) error {
	name, err := ParseName(name)
	if err != nil {
		return err
	}
	return s.change("removed the token "+name, func(f *accountsFile) error {
		n := len(f.Tokens)
		if f.Tokens = slices.DeleteFunc(f.Tokens, func(t token) bool { return t.Name == name }); len(f.Tokens) == n {
			return noAccount("token", name)
		}
		return nil
	})
}

// noAccount returns an ErrNoAccount about a kind of account.
func noAccount(kind, name string) error { return missing{kind, name} }

type missing struct{ kind, name string }

func (m missing) Error() string { return fmt.Sprintf("there is no %s %q", m.kind, m.name) }
func (m missing) Unwrap() error { return ErrNoAccount }

// has reports whether there is an account of a name.
func (f *accountsFile) has(name string) bool {
	return slices.ContainsFunc(f.Users, func(u user) bool { return u.Name == name }) ||
		slices.ContainsFunc(f.Tokens, func(t token) bool { return t.Name == name })
}

// List returns all accounts, sorted by name.
func (s *Store) List() ([]Account, error) {
	f, err := s.accounts.read()
	if err != nil {
		return nil, err
	}
	sessions, err := s.sessions.read()
	if err != nil {
		return nil, err
	}
	all := []Account{}
	for i := range f.Users {
		a := f.Users[i].account()
		if last := sessions.lastLogin(a.Name); !last.IsZero() {
			a.LastLogin = &last
		}
		all = append(all, a)
	}
	for i := range f.Tokens {
		all = append(all, f.Tokens[i].account())
	}
	slices.SortFunc(all, func(a, b Account) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}
