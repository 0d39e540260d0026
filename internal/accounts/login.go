package accounts

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The errors of those who are not let in. Use errors.Is. A [LimitedError] and [ErrBusy] are
// others, to try again.
var (
	ErrWrong     = errors.New("wrong name or password")
	ErrNoSession = errors.New("the session has ended: log in again")
	ErrNoToken   = errors.New("unknown token")
)

// Session is a session of a user.
type Session struct {
	// Cookie is the secret, and Browser that by which a later login knows the browser; only
	// Login returns them.
	Cookie  string `json:"-"`
	Browser string `json:"-"`

	ID    string    `json:"id"` // names the session, and opens nothing
	Name  string    `json:"name"`
	From  string    `json:"from,omitempty"`
	Began time.Time `json:"began"`
	Seen  time.Time `json:"seen"` // the last request, to the minute
	Ends  time.Time `json:"ends"` // earlier if it is idle for an hour
}

// Origin is where an attempt to log in comes from.
type Origin struct {
	Address string // an IP address, or any text if there is none
	Browser string // Session.Browser of an earlier login; "" if the browser has none
}

// Login begins a session of a user. The error is ErrWrong, a LimitedError, ErrBusy, or about
// the files.
func (s *Store) Login(ctx context.Context, name, password string, from Origin) (Session, error) {
	u, err := s.verify(ctx, name, password, from)
	if err != nil {
		return Session{}, err
	}
	return s.begin(u, from)
}

// ChangePassword changes the password of a user who knows the old one. It ends the user's
// sessions, and begins one in place of the present one. The errors are those of Login and
// SetPassword.
func (s *Store) ChangePassword(ctx context.Context, name, old, password string, from Origin) (Session, error) {
	u, err := s.verify(ctx, name, old, from)
	if err != nil {
		return Session{}, err
	}
	if password == "" {
		return Session{}, errShort(0)
	}
	if err := s.SetPassword(u.Name, password); err != nil {
		return Session{}, err
	}
	accounts, err := s.accounts.read()
	if err != nil {
		return Session{}, err
	}
	if u = accounts.byName[u.Name]; u == nil {
		return Session{}, ErrNoSession // removed meanwhile
	}
	return s.begin(u, from)
}

// verify returns the user if the password is right, and counts the attempt.
func (s *Store) verify(ctx context.Context, name, password string, from Origin) (*user, error) {
	u, err := s.check(ctx, name, password, from)
	var limited *LimitedError
	switch {
	case err == nil:
		s.right.Add(1)
	case errors.Is(err, ErrWrong):
		s.wrong.Add(1)
	case errors.As(err, &limited), errors.Is(err, ErrBusy):
		s.limited.Add(1)
	}
	return u, err
}

// check is verify without the count. An attempt with what cannot be a name costs as much as
// others, and counts against the limits.
func (s *Store) check(ctx context.Context, name, password string, from Origin) (*user, error) {
	name, err := ParseName(name)
	if err != nil {
		name = ""
	}
	accounts, err := s.accounts.read()
	if err != nil {
		return nil, err
	}
	sessions, err := s.sessions.read()
	if err != nil {
		return nil, err
	}
	attempt, err := s.limits.begin(name, network(from.Address), sessions.known(name, from))
	if err != nil {
		return nil, err
	}
	if err := s.hasher.enter(ctx); err != nil {
		attempt.giveBack()
		return nil, err
	}
	defer s.hasher.leave()
	u := accounts.byName[name]
	hash := noHash(s.cost)
	if u != nil && u.Password != nil {
		hash = u.Password
	}
	if !hash.matches(password) || u == nil || u.Password == nil {
		return nil, ErrWrong
	}
	attempt.giveBack()
	return u, nil
}

// begin adds a session. If the user has changed since the password was checked, the session
// has ended already. The browser gets a new secret in place of the old one.
func (s *Store) begin(u *user, from Origin) (Session, error) {
	cookie, browser, now := newSecret(), newSecret(), s.now().UTC()
	address := from.Address[:min(len(from.Address), maxFrom)]
	began := session{Digest: sumOf(cookie), Name: u.Name, Epoch: u.Epoch, From: address, Began: now, Seen: now}
	err := s.changeSessions(func(f *sessionsFile) {
		f.add(began)
		f.renew(from.Browser, sumOf(browser))
		f.remember(place{Name: u.Name, Network: network(from.Address), Last: now})
		f.remember(place{Name: u.Name, Browser: sumOf(browser), Last: now})
	})
	if err != nil {
		return Session{}, err
	}
	shown := began.shown()
	shown.Cookie, shown.Browser = cookie, browser
	return shown, nil
}

// Attempts are the attempts to log in since the Store was opened, and those to change a
// password.
type Attempts struct{ Right, Wrong, Limited uint64 }

// Attempts returns how many attempts there were.
func (s *Store) Attempts() Attempts {
	return Attempts{s.right.Load(), s.wrong.Load(), s.limited.Load()}
}

// changeSessions changes the sessions.
func (s *Store) changeSessions(edit func(*sessionsFile)) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.editSessions(edit)
}

// editSessions changes the sessions while the caller holds the lock.
func (s *Store) editSessions(edit func(*sessionsFile)) error {
	accounts, err := s.accounts.read()
	if err != nil {
		return err
	}
	old, err := s.sessions.read()
	if err != nil {
		return err
	}
	stored := old.clone()
	stored.prune(accounts, s.now())
	edit(stored)
	return s.sessions.write(stored)
}

// Session returns the user of a cookie, and notes that the session is in use. The error is
// ErrNoSession, or about the files.
func (s *Store) Session(cookie string) (Account, Session, error) {
	a, session, err := s.session(cookie)
	if err != nil {
		return Account{}, Session{}, err
	}
	if now := s.now(); now.Sub(session.Seen) >= seenStep {
		s.see(session.Digest, now)
	}
	return a, session.shown(), nil
}

// Alive reports whether the session of a cookie has not ended. A page that asks by itself
// uses it: it does not keep the session from ending because it is idle.
func (s *Store) Alive(cookie string) bool {
	_, _, err := s.session(cookie)
	return err == nil
}

// session returns the user and the session of a cookie.
func (s *Store) session(cookie string) (Account, *session, error) {
	sum, ok := digest(cookie)
	if !ok {
		return Account{}, nil, ErrNoSession
	}
	accounts, err := s.accounts.read()
	if err != nil {
		return Account{}, nil, err
	}
	sessions, err := s.sessions.read()
	if err != nil {
		return Account{}, nil, err
	}
	found := sessions.byDigest[sum]
	if found == nil || !found.counts(accounts, s.now()) {
		return Account{}, nil, ErrNoSession
	}
	return accounts.byName[found.Name].account(), found, nil
}

// see notes that a session is in use, unless somebody is changing the files: a later
// request does it then. The same holds if the disk is full.
func (s *Store) see(sum string, now time.Time) {
	if !s.changing.TryLock() {
		return
	}
	defer s.changing.Unlock()
	unlock, err := s.tree.TryLock(".")
	if err != nil {
		return
	}
	defer unlock()
	_ = s.editSessions(func(f *sessionsFile) {
		for i := range f.Sessions {
			if f.Sessions[i].Digest == sum {
				f.Sessions[i].Seen = now.UTC()
			}
		}
	})
}

// End ends the session of a cookie, if there is one.
func (s *Store) End(cookie string) error {
	sum, ok := digest(cookie)
	if !ok {
		return nil
	}
	_, err := s.endSessions(func(found *session) bool { return found.Digest == sum })
	return err
}

// EndID ends the session of a name that has an ID.
func (s *Store) EndID(name, id string) error {
	n, err := s.endSessions(func(found *session) bool { return found.Name == name && found.shown().ID == id })
	if err == nil && n == 0 {
		err = ErrNoSession
	}
	return err
}

// EndAll ends all sessions of a user but those with an ID in except, and returns their number
// here. If the accounts are shared the user's sessions on all other gates end, too; the error is
// an ErrHereOnly if they do not.
func (s *Store) EndAll(name string, except ...string) (int, error) {
	n, err := s.EndHere(name, except...)
	if err != nil || !s.shared() {
		return n, err
	}
	return n, s.endElsewhere(name)
}

// EndHere is EndAll for the sessions on this gate.
func (s *Store) EndHere(name string, except ...string) (int, error) {
	return s.endSessions(func(found *session) bool {
		return found.Name == name && !slices.Contains(except, found.shown().ID)
	})
}

// endSessions ends sessions, and returns their number.
func (s *Store) endSessions(which func(*session) bool) (n int, err error) {
	sessions, err := s.sessions.read()
	if err != nil {
		return 0, err
	}
	if !slices.ContainsFunc(sessions.Sessions, func(found session) bool { return which(&found) }) {
		return 0, nil
	}
	err = s.changeSessions(func(f *sessionsFile) {
		f.Sessions = slices.DeleteFunc(f.Sessions, func(found session) bool {
			if which(&found) {
				n++
				return true
			}
			return false
		})
	})
	return n, err
}

// Sessions returns the sessions of a user, or of all if the name is "", the latest first.
func (s *Store) Sessions(name string) ([]Session, error) {
	accounts, err := s.accounts.read()
	if err != nil {
		return nil, err
	}
	sessions, err := s.sessions.read()
	if err != nil {
		return nil, err
	}
	all, now := []Session{}, s.now()
	for i := range sessions.Sessions {
		session := &sessions.Sessions[i]
		if session.counts(accounts, now) && (name == "" || session.Name == name) {
			all = append(all, session.shown())
		}
	}
	slices.SortFunc(all, func(a, b Session) int { return b.Began.Compare(a.Began) })
	return all, nil
}

// User returns the user of a name that a proxy has authenticated. The error is ErrNoAccount,
// or about the files.
func (s *Store) User(name string) (Account, error) {
	accounts, err := s.accounts.read()
	if err != nil {
		return Account{}, err
	}
	if normal, err := ParseName(name); err == nil {
		if u := accounts.byName[normal]; u != nil {
			return u.account(), nil
		}
	}
	return Account{}, noAccount("user", name)
}

// Token returns the account of a token. The error is ErrNoToken, or about the files.
func (s *Store) Token(secret string) (Account, error) {
	sum, ok := digestOfToken(secret)
	if !ok {
		return Account{}, ErrNoToken
	}
	accounts, err := s.accounts.read()
	if err != nil {
		return Account{}, err
	}
	t := accounts.byDigest[sum]
	if t == nil {
		return Account{}, ErrNoToken
	}
	return t.account(), nil
}
