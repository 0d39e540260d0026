package accounts

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

func TestLogin(t *testing.T) {
	s, other, c := stores(t)
	must(t, s.AddUser("ann", password, Editor, nil))
	must(t, s.AddUser("proxied", "", Admin, nil))
	_, err := s.AddToken("ci", Admin, nil)
	must(t, err)
	for _, wrong := range [][2]string{
		{"ann", "wrong password"}, {"ann", ""}, {"ann", password + "x"}, {"nobody", password}, {"proxied", ""}, {"proxied", password}, {"ci", password}, {"", ""}, {"a b", "x"},
	} {
		_, err := s.Login(context.Background(), wrong[0], wrong[1], Origin{Address: "192.0.2." + wrong[0]})
		wantErr(t, wrong[0], err, ErrWrong)
	}
	session, err := s.Login(context.Background(), "ANN", password, Origin{Address: "192.0.2.1"})
	must(t, err)
	if session.Name != "ann" || session.From != "192.0.2.1" || !session.Ends.Equal(c.now().Add(sessionLimit)) {
		t.Errorf("%+v", session)
	}
	a, again, err := other.Session(session.Cookie)
	if err != nil || a.Name != "ann" || a.Role != Editor || again.ID != session.ID || again.Cookie != "" {
		t.Errorf("%+v, %+v, %v", a, again, err)
	}
	all, err := other.List()
	must(t, err)
	if all[0].LastLogin == nil || !all[0].LastLogin.Equal(c.now()) {
		t.Errorf("the last login: %v", all[0].LastLogin)
	}
}

// A password is the same however its characters are composed.
func TestLoginNFC(t *testing.T) {
	s, _, _ := stores(t)
	must(t, s.AddUser("ann", "schöne Grüße aus Köln", Viewer, nil))
	if _, err := s.Login(context.Background(), "ann", "scho\u0308ne Gru\u0308ße aus Ko\u0308ln", Origin{Address: ""}); err != nil {
		t.Error(err)
	}
}

// What ends a session ends it in both processes, and no other one.
func TestSessionEnds(t *testing.T) {
	for what, end := range map[string]func(s *Store, c *clock, cookie string) error{
		"End":          func(s *Store, _ *clock, cookie string) error { return s.End(cookie) },
		"SetPassword":  func(s *Store, _ *clock, _ string) error { return s.SetPassword("ann", password) },
		"no password":  func(s *Store, _ *clock, _ string) error { return s.SetPassword("ann", "") },
		"SetRole":      func(s *Store, _ *clock, _ string) error { return s.SetRole("ann", Admin, nil) },
		"other domain": func(s *Store, _ *clock, _ string) error { return s.SetRole("ann", Editor, []string{"example.net"}) },
		"Remove":       func(s *Store, _ *clock, _ string) error { return s.Remove("ann") },
		"added again": func(s *Store, _ *clock, _ string) error {
			return errors.Join(s.Remove("ann"), s.AddUser("ann", password, Editor, nil))
		},
		"EndAll": func(s *Store, _ *clock, _ string) error {
			n, err := s.EndAll("ann")
			if n != 1 {
				err = errors.Join(err, errors.New("not one"))
			}
			return err
		},
		"EndID": func(s *Store, _ *clock, cookie string) error {
			_, session, err := s.Session(cookie)
			return errors.Join(err, s.EndID("ann", session.ID))
		},
		"clock set back": func(_ *Store, c *clock, _ string) error { c.move(-48 * time.Hour); return nil },
	} {
		t.Run(what, func(t *testing.T) {
			s, other, c := stores(t)
			must(t, s.AddUser("ann", password, Editor, nil))
			must(t, s.AddUser("bob", password, Editor, nil))
			cookie, bobs := login(t, s, "ann"), login(t, s, "bob")
			_, _, err := other.Session(cookie)
			must(t, err)
			must(t, end(s, c, cookie))
			for _, s := range []*Store{s, other} {
				_, _, err := s.Session(cookie)
				wantErr(t, "the session", err, ErrNoSession)
			}
			if what == "clock set back" {
				return
			}
			if a, _, err := other.Session(bobs); err != nil || a.Name != "bob" {
				t.Errorf("the other session: %v, %v", a, err)
			}
			wantErr(t, "ending it again", other.End(cookie), nil)
			wantErr(t, "ending one of somebody else", s.EndID("ann", sumOf(bobs)[:sessionID]), ErrNoSession)
		})
	}
}

// A user changes his own password: he must know the old one, and all other sessions end.
func TestChangePassword(t *testing.T) {
	s, other, _ := stores(t)
	must(t, s.AddUser("ann", password, Editor, nil))
	elsewhere := login(t, s, "ann")
	for _, c := range []struct {
		old, new string
		want     error
	}{
		{"wrong password", "another good one", ErrWrong}, {"", "another good one", ErrWrong}, {password, "short", ErrPassword}, {password, "", ErrPassword},
	} {
		_, err := s.ChangePassword(context.Background(), "ann", c.old, c.new, Origin{Address: "192.0.2.1"})
		wantErr(t, c.new, err, c.want)
	}
	if !other.Alive(elsewhere) {
		t.Error("a session ended without a change")
	}
	session, err := s.ChangePassword(context.Background(), "ann", password, "another good one", Origin{Address: "192.0.2.1"})
	must(t, err)
	if a, _, err := other.Session(session.Cookie); err != nil || a.Name != "ann" {
		t.Errorf("the new session: %v, %v", a, err)
	}
	if other.Alive(elsewhere) {
		t.Error("an old session goes on")
	}
	_, err = other.Login(context.Background(), "ann", password, Origin{Address: "192.0.2.1"})
	wantErr(t, "the old password", err, ErrWrong)
	_, err = other.Login(context.Background(), "ann", "another good one", Origin{Address: "192.0.2.1"})
	wantErr(t, "the new password", err, nil)
}

// A session can end all others.
func TestEndOthers(t *testing.T) {
	s, _, _ := stores(t)
	must(t, s.AddUser("ann", password, Editor, nil))
	item, two := login(t, s, "ann"), login(t, s, "ann")
	_, present, err := s.Session(item)
	must(t, err)
	if n, err := s.EndAll("ann", present.ID); n != 1 || err != nil || !s.Alive(item) || s.Alive(two) {
		t.Errorf("%d ended, %v; %v, %v", n, err, s.Alive(item), s.Alive(two))
	}
}

// A session ends when it is idle, and when it is old.
func TestSessionExpires(t *testing.T) {
	s, other, c := stores(t)
	must(t, s.AddUser("ann", password, Editor, nil))
	idle, used := login(t, s, "ann"), login(t, s, "ann")
	for i := range 12 {
		if alive := other.Alive(idle); alive != (i < 2) {
			t.Errorf("round %d: the idle session is alive: %v", i, alive)
		}
		c.move(59 * time.Minute)
		if _, _, err := []*Store{s, other}[i%2].Session(used); err != nil {
			t.Fatalf("in use: %v", err)
		}
	}
	_, _, err := s.Session(idle)
	wantErr(t, "idle", err, ErrNoSession)
	c.move(12 * time.Minute)
	_, _, err = s.Session(used)
	wantErr(t, "old", err, ErrNoSession)
}

// Seeing a session again and again writes once a minute.
func TestSeenStep(t *testing.T) {
	s, _, c := stores(t)
	must(t, s.AddUser("ann", password, Editor, nil))
	cookie := login(t, s, "ann")
	stat := func() os.FileInfo {
		info, err := os.Stat(s.tree.Path(sessionsName))
		must(t, err)
		return info
	}
	before := stat()
	for range 59 {
		c.move(time.Second)
		if _, _, err := s.Session(cookie); err != nil {
			t.Fatal(err)
		}
	}
	if !os.SameFile(before, stat()) {
		t.Error("written within a minute")
	}
	c.move(time.Second)
	if _, _, err := s.Session(cookie); err != nil {
		t.Fatal(err)
	}
	if os.SameFile(before, stat()) {
		t.Error("not written after a minute")
	}
}

// Too many sessions end those that have been idle longest.
func TestManySessions(t *testing.T) {
	clock := newClock()
	a := &accountsFile{}
	f := &sessionsFile{}
	for i := range maxSessions + 100 {
		clock.move(time.Second)
		f.add(session{Digest: sumOf(newSecret()), Name: string(rune('a' + i%200)), Began: clock.now(), Seen: clock.now()})
	}
	if len(f.Sessions) > maxSessions {
		t.Errorf("%d sessions", len(f.Sessions))
	}
	for range 100 {
		clock.move(time.Second)
		f.add(session{Digest: sumOf(newSecret()), Name: "busy", Began: clock.now(), Seen: clock.now()})
	}
	if n := f.count("busy"); n != maxSessionsOf {
		t.Errorf("%d sessions of one user", n)
	}
	must(t, f.check())
	for i := range 20 {
		clock.move(time.Second)
		f.remember(place{Name: "ann", Network: string(rune('a' + i)), Last: clock.now()})
		f.remember(place{Name: "ann", Browser: string(rune('a' + i)), Last: clock.now()})
	}
	if len(f.Places) != 2*maxPlaces || f.has(place{Name: "ann", Network: "a"}) ||
		!f.has(place{Name: "ann", Network: "t"}) || !f.has(place{Name: "ann", Browser: "t"}) {
		t.Errorf("places: %v", f.Places)
	}
	f.prune(a, clock.now())
	if len(f.Sessions)+len(f.Places) != 0 {
		t.Error("users who are gone left something")
	}
}

// Sessions lists those that count, and no cookie.
func TestSessions(t *testing.T) {
	s, _, c := stores(t)
	must(t, s.AddUser("ann", password, Editor, nil))
	must(t, s.AddUser("bob", password, Editor, nil))
	login(t, s, "ann")
	c.move(30 * time.Minute)
	login(t, s, "bob")
	login(t, s, "ann")
	for name, want := range map[string]int{"": 3, "ann": 2, "bob": 1, "carol": 0} {
		if all, err := s.Sessions(name); err != nil || len(all) != want {
			t.Errorf("of %q: %v, %v", name, all, err)
		}
	}
	c.move(31 * time.Minute)
	if all, err := s.Sessions("ann"); err != nil || len(all) != 1 || all[0].Cookie != "" {
		t.Errorf("after one has ended: %v, %v", all, err)
	}
}

// Many at once read, log in and change passwords.
func TestConcurrent(t *testing.T) {
	store, other, _ := stores(t)
	for _, name := range []string{"ann", "bob"} {
		must(t, store.AddUser(name, password, Editor, nil))
	}
	cookie := login(t, store, "bob")
	var running sync.WaitGroup
	for i := range 4 {
		s := []*Store{store, other}[i%2]
		running.Go(func() {
			for range 5 {
				if _, _, err := s.Session(cookie); err != nil {
					t.Error(err)
				}
				must(t, s.SetRole("ann", Role(i), nil))
				if session, err := s.Login(context.Background(), "ann", password, Origin{Address: "192.0.2.1"}); err == nil {
					must(t, s.End(session.Cookie))
				} else {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}

// The cost of a hash is what OWASP asks for at least, and that of a user who does not exist is
// the same.
func TestCost(t *testing.T) {
	if usualCost.memory < 19<<10 || usualCost.time < 2 || usualCost.threads != 1 {
		t.Errorf("%+v", usualCost)
	}
	s := Open(t.TempDir())
	defer s.Close()
	must(t, s.AddUser("ann", password, Viewer, nil))
	accounts, err := s.accounts.read()
	must(t, err)
	if hash := accounts.byName["ann"].Password; hash.cost != usualCost || noHash(s.cost).cost != hash.cost {
		t.Errorf("a user's hash: %+v", hash.cost)
	}
	login(t, s, "ann")
}

// TestRightPasswordIsFree: who has the right password may log in as often as he likes.
func TestRightPasswordIsFree(t *testing.T) {
	s, _, _ := stores(t)
	must(t, s.AddUser("ann", password, Viewer, nil))
	for i := range 25 {
		if _, err := s.Login(context.Background(), "ann", password, Origin{Address: "192.0.2.1"}); err != nil {
			t.Fatalf("login %d: %v", i+1, err)
		}
	}
}
