package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Fleet shares the accounts with other gates.
type Fleet interface {
	// Shared reports whether the accounts are those of the fleet now.
	Shared() bool

	// Retry calls edit, which calls Publish, and again if another gate has changed the accounts
	// meanwhile. The error is a [RefusedError] if the fleet did not take the change.
	Retry(ctx context.Context, edit func() error) error

	// Publish makes text the accounts of all gates in place of old, which is nil if there are
	// none. The caller holds the lock of the directory, and calls done.
	Publish(ctx context.Context, what string, old *os.File, text []byte) (done func(placed bool), err error)

	// EndSessions ends the sessions of a user on all other gates.
	EndSessions(ctx context.Context, user string) error
}

// MaxShared bounds shared accounts, in bytes.
const MaxShared = 16 << 20

// ErrHereOnly says that the fleet could not be told to end sessions.
var ErrHereOnly = errors.New("the sessions on this gate have ended, but not those on the other gates: try again")

// Path returns the file with the accounts of a directory.
func Path(dir string) string { return filepath.Join(dir, accountsName) }

// Join makes changes of the accounts those of a fleet, while they are shared. It is called
// before the first change.
func (s *Store) Join(f Fleet) { s.fleet = f }

func (s *Store) shared() bool { return s.fleet != nil && s.fleet.Shared() }

// Prepare makes the file with the accounts if there is none, so that it can be shared.
func (s *Store) Prepare() error {
	if _, err := s.tree.StatFile(accountsName); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unlock, err := s.makeAndLock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.tree.StatFile(accountsName); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.accounts.write((&accountsFile{}).clone())
}

// A RefusedError says that the fleet did not take a change.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// changeShared is change if the accounts are shared: the file is replaced after the fleet has
// taken the change.
func (s *Store) changeShared(what string, edit func(*accountsFile) error) error {
	ctx := context.Background() // a Fleet has its own limits
	return s.fleet.Retry(ctx, func() error {
		return s.changeFile(edit, func(old, stored *accountsFile) error {
			if !stored.keepsAdmin(old) {
				return ErrNoAdmin
			}
			return s.publish(ctx, what, stored)
		})
	})
}

// publish makes now the accounts of all gates. The caller holds the lock of the directory.
func (s *Store) publish(ctx context.Context, what string, stored *accountsFile) error {
	text, err := encode(stored)
	if err != nil {
		return err
	}
	if len(text) > MaxShared {
		return fmt.Errorf("the accounts would have %d bytes, and a fleet shares at most %d", len(text), MaxShared)
	}
	old, err := s.openAccounts()
	if err != nil {
		return err
	}
	if old != nil {
		defer old.Close()
	}
	done, err := s.fleet.Publish(ctx, what, old, text)
	if err != nil {
		return err
	}
	err = s.accounts.writeText(text)
	done(err == nil)
	return err
}

// openAccounts opens the file with the accounts; nil if there is none.
func (s *Store) openAccounts() (*os.File, error) {
	file, err := s.tree.Open(accountsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// endElsewhere ends the sessions of a user on the other gates.
func (s *Store) endElsewhere(name string) error {
	if err := s.fleet.EndSessions(context.Background(), name); err != nil {
		return fmt.Errorf("%w (%w)", ErrHereOnly, err)
	}
	return nil
}

// Replace implements fleet.AccountsFile. It refuses accounts without an admin in place of
// some with one. A damaged file can be replaced.
func (s *Store) Replace(content []byte, before func(old *os.File) error) error {
	stored, err := parseShared(content)
	if err != nil {
		return err
	}
	unlock, err := s.makeAndLock()
	if err != nil {
		return err
	}
	defer unlock()
	if old, err := s.accounts.read(); err == nil && !stored.keepsAdmin(old) {
		return ErrNoAdmin
	}
	old, err := s.openAccounts()
	if err != nil {
		return err
	}
	if old != nil {
		defer old.Close()
	}
	if err := before(old); err != nil {
		return err
	}
	return s.accounts.writeText(content)
}

// Compare implements fleet.AccountsFile.
func (s *Store) Compare(own, fleets []byte) (missing, theirs int, err error) {
	mine, err := parseShared(own)
	if err != nil {
		return 0, 0, err
	}
	other, err := parseShared(fleets)
	if err != nil {
		return 0, 0, err
	}
	has := map[string]bool{}
	for _, text := range other.texts() {
		has[text] = true
	}
	for _, text := range mine.texts() {
		if !has[text] {
			missing++
		}
	}
	return missing, len(has), nil
}

// Merge implements fleet.AccountsFile. Of an account that both have, the fleet's password,
// role and domains count.
func (s *Store) Merge(own, fleets []byte) (merged []byte, added int, err error) {
	mine, err := parseShared(own)
	if err != nil {
		return nil, 0, err
	}
	other, err := parseShared(fleets)
	if err != nil {
		return nil, 0, err
	}
	stored := other.clone()
	for _, u := range mine.Users {
		if !other.has(u.Name) {
			stored.Users = append(stored.Users, u)
			added++
		}
	}
	for _, t := range mine.Tokens {
		if !other.has(t.Name) && other.byDigest[t.Digest] == nil {
			stored.Tokens = append(stored.Tokens, t)
			added++
		}
	}
	merged, err = encode(stored)
	return merged, added, err
}

// parseShared parses accounts that may come from another gate. It counts before it parses, so
// that a hostile content costs little memory.
func parseShared(text []byte) (*accountsFile, error) {
	const objects = 1 + maxAccounts
	stored := new(accountsFile)
	switch {
	case len(text) > MaxShared:
		return nil, fmt.Errorf("accounts of %d bytes, more than %d", len(text), MaxShared)
	case bytes.Count(text, []byte("{")) > objects:
		return nil, fmt.Errorf("more than %d accounts", maxAccounts)
	}
	if err := parse(text, stored); err != nil {
		return nil, fmt.Errorf("these accounts are damaged: %w", err)
	}
	return stored, nil
}

// keepsAdmin reports whether there is a user who is an admin for all domains, if there was one
// before.
func (f *accountsFile) keepsAdmin(before *accountsFile) bool {
	return f.hasAdmin() || !before.hasAdmin()
}

func (f *accountsFile) hasAdmin() bool {
	for i := range f.Users {
		if f.Users[i].Role == Admin && f.Users[i].Domains == nil {
			return true
		}
	}
	return false
}

// texts returns each account as JSON.
func (f *accountsFile) texts() (all []string) {
	for i := range f.Users {
		all = append(all, textOf(&f.Users[i]))
	}
	for i := range f.Tokens {
		all = append(all, textOf(&f.Tokens[i]))
	}
	return all
}

func textOf(account any) string {
	text, _ := json.Marshal(account) // it was parsed
	return string(text)
}
