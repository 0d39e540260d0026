package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/fleet"
	"spamgate/internal/fleet/fleettest"
)

// member is a gate that shares its accounts.
type member struct {
	*Store
	t    *testing.T
	name string
	m    *fleet.Member
}

// Shared implements Fleet, as EndSessions, Retry and Publish do.
func (m *member) Shared() bool { return m.m != nil }

func (m *member) EndSessions(ctx context.Context, user string) error {
	return m.m.SetState(ctx, fleet.StateKey("ended", user), func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("true"), nil })
}

func (m *member) Retry(ctx context.Context, edit func() error) error {
	err := m.m.Retry(ctx, fleet.AccountsList, edit)
	if fleet.Refused(err) {
		return &RefusedError{err}
	}
	return err
}

func (m *member) Publish(ctx context.Context, what string, old *os.File, text []byte) (func(bool), error) {
	return m.m.Publish(ctx, fleet.AccountsEdit(what, old, text))
}

// newMember returns a gate that is in no fleet yet.
func newMember(t *testing.T, name string) *member {
	t.Helper()
	m := &member{Store: open(filepath.Join(t.TempDir(), "console"), cheap, time.Now), t: t, name: name}
	m.Store.Join(m)
	t.Cleanup(m.Store.Close)
	return m
}

// join makes the gate a member.
func (m *member) join(s *fleettest.Server) *member {
	m.t.Helper()
	must(m.t, m.Prepare())
	dir := m.tree.Dir()
	member, err := fleet.Open(fleet.Options{
		Name: m.name, Servers: []string{s.URL()}, StateDir: filepath.Dir(dir), Accounts: m.Store,
		Lists: []fleet.List{{Name: fleet.AccountsList, Kind: fleet.Accounts, Path: Path(dir), MaxBytes: MaxShared}},
		StateChanged: func(key string, _ json.RawMessage) error {
			_, user, _ := fleet.ParseStateKey(key)
			_, err := m.EndHere(user)
			return err
		},
	})
	must(m.t, err)
	m.t.Cleanup(member.Close)
	m.m = member
	return m
}

// list returns the state of the accounts on the gate.
func (m *member) list() fleet.ListStatus { return m.m.Status().Lists[0] }

func (m *member) file() []byte {
	m.t.Helper()
	text, err := os.ReadFile(Path(m.tree.Dir()))
	must(m.t, err)
	return text
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

// equal waits until gates have the same accounts.
func equal(t *testing.T, a, b *member) {
	t.Helper()
	eventually(t, "both have the same accounts", func() bool {
		return a.list().Sequence > 0 && a.list().Sequence == b.list().Sequence && bytes.Equal(a.file(), b.file())
	})
}

// TestShared changes accounts on two gates at once, and looks at what that does on the other one.
func TestShared(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newMember(t, "a"), newMember(t, "b")
	must(t, a.AddUser("ann", password, Admin, nil)) // before it joins
	a.join(s)
	b.join(s)
	equal(t, a, b)
	const n = 10
	var wg sync.WaitGroup
	for _, m := range []*member{a, b} {
		wg.Go(func() {
			for i := range n {
				if err := m.AddUser(fmt.Sprintf("%s%d", m.name, i), "", Viewer, nil); err != nil {
					t.Errorf("%s: %v", m.name, err)
				}
			}
		})
	}
	wg.Wait()
	equal(t, a, b)
	if all, err := b.List(); len(all) != 1+2*n || err != nil {
		t.Errorf("%d accounts, %v", len(all), err)
	}

	secret, err := a.AddToken("ci", Viewer, nil)
	must(t, err)
	for what, change := range map[string]func() error{
		"a new password":  func() error { return a.SetPassword("ann", password) },
		"another role":    func() error { return a.SetRole("eve", Viewer, nil) },
		"a removed user":  func() error { return a.Remove("eve") },
		"a removed token": func() error { return a.RemoveToken("ci") },
		"all sessions": func() error {
			_, err := a.EndAll("ann")
			return err
		},
	} {
		if _, err := a.User("eve"); err != nil {
			must(t, a.AddUser("eve", password, Editor, nil))
		}
		equal(t, a, b)
		cookies := map[string]string{"ann": login(t, b.Store, "ann"), "eve": login(t, b.Store, "eve")}
		must(t, change())
		ended := func(name string) func() bool { return func() bool { return !b.Alive(cookies[name]) } }
		switch what {
		case "a new password", "all sessions":
			eventually(t, what, ended("ann"))
			if !b.Alive(cookies["eve"]) {
				t.Errorf("%s ends the sessions of another user", what)
			}
		case "a removed token":
			eventually(t, what, func() bool { _, err := b.Token(secret); return errors.Is(err, ErrNoToken) })
		default:
			eventually(t, what, ended("eve"))
		}
	}
}

// TestNoServer changes accounts while the fleet cannot be reached: nothing changes, and logins
// go on.
func TestNoServer(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newMember(t, "a").join(s), newMember(t, "b").join(s)
	must(t, a.AddUser("ann", password, Admin, nil))
	equal(t, a, b)
	before := a.file()
	s.Stop()
	eventually(t, "the gate notices it", func() bool { return !a.m.Status().Connected })
	err := a.AddUser("bob", password, Viewer, nil)
	if !errors.As(err, new(*RefusedError)) || !strings.Contains(err.Error(), "the edit is refused") {
		t.Errorf("adding a user: %v", err)
	}
	cookie := login(t, a.Store, "ann")
	_, err = a.EndAll("ann")
	wantErr(t, "ending sessions", err, ErrHereOnly)
	if a.Alive(cookie) {
		t.Error("the session goes on")
	}
	if !bytes.Equal(a.file(), before) {
		t.Error("the accounts have changed")
	}
	s.Restart()
	eventually(t, "it is back", func() bool { return a.m.Status().Connected })
	must(t, a.AddUser("bob", password, Viewer, nil))
	equal(t, a, b)
}

// TestFirstJoin joins a fleet that has ann with accounts of its own.
func TestFirstJoin(t *testing.T) {
	t.Parallel()
	merge := func(m *member) error {
		_, err := m.m.Merge(t.Context(), fleet.AccountsList, "root", "")
		return err
	}
	for _, c := range []struct {
		name    string
		own     func(m *member) // beside what makes it equal
		differs bool
		decide  func(m *member) error
		want    string // who is there then
	}{
		{"none", func(*member) {}, false, nil, "ann"},
		{"others, and takes the fleet's", func(m *member) {
			must(t, m.AddUser("bob", password, Admin, nil))
		}, true, func(m *member) error { return m.m.Take(t.Context(), fleet.AccountsList) }, "ann"},
		{"others, and merges", func(m *member) {
			must(t, m.AddUser("bob", password, Editor, nil))
			must(t, m.AddUser("ann", "another password", Viewer, nil))
		}, true, merge, "ann bob"},
		{"the same name, and merges", func(m *member) {
			must(t, m.AddUser("ann", "another password", Admin, []string{"example.net"}))
		}, true, merge, "ann"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := fleettest.Start(t, nil)
			a, b := newMember(t, "a"), newMember(t, "b")
			must(t, a.AddUser("ann", password, Admin, nil))
			a.join(s)
			eventually(t, "the first gate has a version", func() bool { return a.list().Sequence > 0 })
			c.own(b)
			own := []byte(nil)
			if c.differs {
				own = b.file()
			}
			b.join(s)
			if c.differs {
				eventually(t, "it differs", func() bool { return strings.Contains(b.list().Error, "differs from the fleet's") })
				wantErr(t, "a change", b.AddUser("eve", "", Viewer, nil), fleet.ErrDiffers)
				if !bytes.Equal(b.file(), own) {
					t.Error("the accounts have changed")
				}
				must(t, c.decide(b))
			}
			equal(t, a, b)
			all, err := a.List()
			must(t, err)
			var names []string
			for _, account := range all {
				names = append(names, account.Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("there are %s, want %s", got, c.want)
			}
			if ann, err := b.User("ann"); err != nil || ann.Role != Admin || ann.Domains != nil {
				t.Errorf("%+v, %v", ann, err)
			}
			login(t, b.Store, "ann") // with the fleet's password
		})
	}
}

// TestReplace gives a gate contents that it must not take, and one that it must.
func TestReplace(t *testing.T) {
	s, _, _ := stores(t)
	must(t, s.AddUser("ann", password, Admin, nil))
	good, err := os.ReadFile(Path(s.tree.Dir()))
	must(t, err)
	replaced := func(old, current string) string { return strings.Replace(string(good), old, current, 1) }
	moved := errors.New("moved")
	for _, c := range []struct {
		name, content string
		moved         error
		want          string
	}{
		{"nothing", "", nil, "damaged"},
		{"no JSON", "ann:x:0", nil, "damaged"},
		{"cut off", string(good[:len(good)/2]), nil, "damaged"},
		{"another version", replaced(`"version": 1`, `"version": 2`), nil, "this program knows version 1"},
		{"an unknown field", replaced(`"version": 1`, `"version": 1, "all": true`), nil, "unknown field"},
		{"an invalid name", replaced(`"ann"`, `"Ann\u001b[2J"`), nil, "not an account's name"},
		{"no admin", replaced(`"admin"`, `"editor"`), nil, ErrNoAdmin.Error()},
		{"an admin for a domain", replaced(`"role": "admin"`, `"role": "admin", "domains": ["example.net"]`), nil, ErrNoAdmin.Error()},
		{"nobody", `{"version": 1, "users": [], "tokens": []}`, nil, ErrNoAdmin.Error()},
		{"too many", `{"version": 1, "users": [` + strings.Repeat("{},", maxAccounts) + `{}]}`, nil, "more than 10000 accounts"},
		{"too large", string(good) + strings.Repeat(" ", MaxShared), nil, "bytes, more than"},
		{"the file has changed", string(good), moved, "moved"},
	} {
		err := s.Replace([]byte(c.content), func(*os.File) error { return c.moved })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if current, err := os.ReadFile(Path(s.tree.Dir())); err != nil || !bytes.Equal(current, good) {
			t.Fatalf("%s: the file has changed: %v", c.name, err)
		}
	}
	must(t, s.Replace([]byte(replaced(`"ann"`, `"bob"`)), func(*os.File) error { return nil }))
	if _, err := s.User("bob"); err != nil {
		t.Error(err)
	}
}
