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
	// Cookie is the secret; only Login returns it.
	Cookie string `json:"-"`

	ID    string    `json:"id"` // names the session, and opens nothing
	Name  string    `json:"name"`
	From  string    `json:"from,omitempty"`
	Began time.Time `json:"began"`
	Seen  time.Time `json:"seen"` // the last request, to the minute
	Ends  time.Time `json:"ends"` // earlier if it is idle for an hour
}

// noHash is checked instead of the hash of a user who does not exist, so that the answer
// takes as long.
var noHash = passwordHash{memory: hashMemory, time: hashTime, threads: hashThreads, salt: make([]byte, saltBytes), sum: make([]byte, hashBytes)}

// Login begins a session of a user. From is where the request is from: an IP address, or any
// text if there is none. The error is ErrWrong, a LimitedError, ErrBusy, or about the files.
func (s *Store) Login(ctx context.Context, name, password, from string) (Session, error) {
	name, err := ParseName(name)
	if err != nil {
		return Session{}, ErrWrong
	}
	at := network(from)
	accounts, err := s.accounts.read()
	if err != nil {
		return Session{}, err
	}
	sessions, err := s.sessions.read()
	if err != nil {
		return Session{}, err
	}
	attempt, err := s.limits.begin(name, at, sessions.isKnown(name, at))
	if err != nil {
		return Session{}, err
	}
	if err := s.hasher.enter(ctx); err != nil {
		attempt.giveBack()
		return Session{}, err
	}
	user, hash := accounts.byName[name], &noHash
	if user != nil && user.Password != nil {
		hash = user.Password
	}
	right := hash.matches(password)
	s.hasher.leave()
	if !right || hash == &noHash {
		return Session{}, ErrWrong
	}
	attempt.giveBack()
	return s.begin(user, at, from[:min(len(from), maxFrom)])
}

// begin adds a session. If the user has changed since the password was checked, the session
// has ended already.
func (s *Store) begin(u *user, network, from string) (Session, error) {
	cookie, now := newSecret(), s.now().UTC()
	began := session{Digest: sumOf(cookie), Name: u.Name, Epoch: u.Epoch, From: from, Began: now, Seen: now}
	err := s.changeSessions(func(f *sessionsFile) {
		f.add(began)
		f.remember(u.Name, network, now)
	})
	if err != nil {
		return Session{}, err
	}
	shown := began.shown()
	shown.Cookie = cookie
	return shown, nil
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
	now := old.clone()
	now.prune(accounts, s.now())
	edit(now)
	return s.sessions.write(now)
}

// Session returns the user of a cookie, and notes that the session is in use. The error is
// ErrNoSession, or about the files.
func (s *Store) Session(cookie string) (Account, Session, error) {
	sum, ok := digest(cookie)
	if !ok {
		return Account{}, Session{}, ErrNoSession
	}
	accounts, err := s.accounts.read()
	if err != nil {
		return Account{}, Session{}, err
	}
	sessions, err := s.sessions.read()
	if err != nil {
		return Account{}, Session{}, err
	}
	now := s.now()
	one := sessions.byDigest[sum]
	if one == nil || !one.counts(accounts, now) {
		return Account{}, Session{}, ErrNoSession
	}
	if now.Sub(one.Seen) >= seenStep {
		s.see(sum, now)
	}
	return accounts.byName[one.Name].account(), one.shown(), nil
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
	_, err := s.endSessions(func(one *session) bool { return one.Digest == sum })
	return err
}

// EndID ends the session of a name that has an ID.
func (s *Store) EndID(name, id string) error {
	n, err := s.endSessions(func(one *session) bool { return one.Name == name && one.shown().ID == id })
	if err == nil && n == 0 {
		err = ErrNoSession
	}
	return err
}

// EndAll ends all sessions of a user, and returns their number.
func (s *Store) EndAll(name string) (int, error) {
	return s.endSessions(func(one *session) bool { return one.Name == name })
}

// endSessions ends sessions, and returns their number.
func (s *Store) endSessions(which func(*session) bool) (n int, err error) {
	sessions, err := s.sessions.read()
	if err != nil {
		return 0, err
	}
	if !slices.ContainsFunc(sessions.Sessions, func(one session) bool { return which(&one) }) {
		return 0, nil
	}
	err = s.changeSessions(func(f *sessionsFile) {
		f.Sessions = slices.DeleteFunc(f.Sessions, func(one session) bool {
			if which(&one) {
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
		one := &sessions.Sessions[i]
		if one.counts(accounts, now) && (name == "" || one.Name == name) {
			all = append(all, one.shown())
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
