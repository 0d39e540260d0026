package accounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAccounts adds, changes and removes users and tokens. Every step counts in the other
// Store at once.
func TestAccounts(t *testing.T) {
	s, other, _ := stores(t)
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Fatalf("at first: %v, %v", all, err)
	}
	must(t, s.AddUser("Ann@Example.net", password, Editor, []string{"Bücher.example", "@example.net", "example.net"}))
	must(t, other.AddUser("bob", "", Viewer, nil))
	secret, err := s.AddToken("ci", Helpdesk, nil)
	must(t, err)
	all, err := other.List()
	must(t, err)
	got := ""
	for _, a := range all {
		got += fmt.Sprintln(a.Name, a.Role, a.Domains, a.Token, a.Password)
	}
	const want = "ann@example.net editor [example.net xn--bcher-kva.example] false true\nbob viewer [] false false\nci helpdesk [] true false\n"
	if got != want {
		t.Errorf("listed:\n%s", got)
	}

	wantErr(t, "a user twice", s.AddUser("BOB", password, Viewer, nil), ErrExists)
	wantErr(t, "a user like a token", s.AddUser("ci", password, Viewer, nil), ErrExists)
	_, err = other.AddToken("bob", Viewer, nil)
	wantErr(t, "a token like a user", err, ErrExists)
	wantErr(t, "removing nobody", s.Remove("ci"), ErrNoAccount)
	wantErr(t, "removing no token", s.RemoveToken("bob"), ErrNoAccount)
	wantErr(t, "a role for nobody", s.SetRole("carol", Admin, nil), ErrNoAccount)
	wantErr(t, "a password for a token", s.SetPassword("ci", password), ErrNoAccount)

	if a, err := other.Token(secret); err != nil || a.Name != "ci" || a.Role != Helpdesk || !a.Token {
		t.Errorf("the token: %v, %v", a, err)
	}
	if a, err := other.User("Bob"); err != nil || a.Name != "bob" || a.Token {
		t.Errorf("the user: %v, %v", a, err)
	}
	for _, name := range []string{"ci", "carol", "", "bob\n", "bob, ann"} {
		_, err := other.User(name)
		wantErr(t, name, err, ErrNoAccount)
	}
	must(t, s.RemoveToken("ci"))
	_, err = other.Token(secret)
	wantErr(t, "the removed token", err, ErrNoToken)
	must(t, s.Remove("bob"))
	_, err = other.User("bob")
	wantErr(t, "the removed user", err, ErrNoAccount)
}

// No secret is in a file, and only the owner may read it.
func TestFilesHaveNoSecrets(t *testing.T) {
	s, _, _ := stores(t)
	must(t, s.AddUser("ann", password, Admin, nil))
	secret, err := s.AddToken("ci", Viewer, nil)
	must(t, err)
	cookie := login(t, s, "ann")
	for _, name := range []string{accountsName, sessionsName} {
		text, err := os.ReadFile(s.tree.Path(name))
		must(t, err)
		for _, secret := range []string{password, cookie, strings.TrimPrefix(secret, tokenPrefix)} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s has %s", name, secret)
			}
		}
		info, err := os.Stat(s.tree.Path(name))
		must(t, err)
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	if info, err := os.Stat(s.tree.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
}

// A damaged file lets nobody in, and no command replaces it. Once it is repaired all is as
// before.
func TestDamaged(t *testing.T) {
	good := func(t *testing.T) (*Store, string, string) {
		s, _, _ := stores(t)
		must(t, s.AddUser("ann", password, Admin, nil))
		secret, err := s.AddToken("ci", Viewer, []string{"example.net"})
		must(t, err)
		return s, login(t, s, "ann"), secret
	}
	for _, c := range []struct {
		what, file string
		damage     func(string) string
	}{
		{"emptied", accountsName, func(string) string { return "" }},
		{"cut off", accountsName, func(s string) string { return s[:len(s)/2] }},
		{"zeros", accountsName, func(s string) string { return strings.Repeat("\x00", len(s)) }},
		{"an empty object", accountsName, func(string) string { return "{}" }},
		{"null", accountsName, func(string) string { return "null" }},
		{"more after it", accountsName, func(s string) string { return s + s }},
		{"newer", accountsName, func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) }},
		{"unknown key", accountsName, func(s string) string { return strings.Replace(s, `"role"`, `"roles"`, 1) }},
		{"unknown role", accountsName, func(s string) string { return strings.Replace(s, `"admin"`, `"root"`, 1) }},
		{"name twice", accountsName, func(s string) string { return strings.Replace(s, `"ci"`, `"ann"`, 1) }},
		{"no domains", accountsName, func(s string) string { return strings.Replace(s, "\"example.net\"\n", "", 1) }},
		{"domain", accountsName, func(s string) string { return strings.Replace(s, "example.net", "Example.net", 1) }},
		{"hash", accountsName, func(s string) string { return strings.Replace(s, "m=8", "m=99999999", 1) }},
		{"token", accountsName, func(s string) string { return strings.Replace(s, `"sha256": "`, `"sha256": "00`, 1) }},
		{"sessions emptied", sessionsName, func(string) string { return "" }},
		{"session", sessionsName, func(s string) string { return strings.Replace(s, `"sha256": "`, `"sha256": "00`, 1) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			s, cookie, secret := good(t)
			path := s.tree.Path(c.file)
			text, err := os.ReadFile(path)
			must(t, err)
			damaged := c.damage(string(text))
			if damaged == string(text) {
				t.Fatal("nothing is damaged")
			}
			must(t, os.WriteFile(path, []byte(damaged), 0o600))
			_, err = s.Login(context.Background(), "ann", password, Origin{Address: "192.0.2.1"})
			wantErr(t, "login", err, ErrDamaged)
			_, _, err = s.Session(cookie)
			wantErr(t, "session", err, ErrDamaged)
			_, err = s.Check()
			wantErr(t, "check", err, ErrDamaged)
			if c.file == accountsName {
				_, err = s.Token(secret)
				wantErr(t, "token", err, ErrDamaged)
				_, err = s.User("ann")
				wantErr(t, "user", err, ErrDamaged)
				wantErr(t, "add", s.AddUser("eve", password, Admin, nil), ErrDamaged)
			}
			if current, err := os.ReadFile(path); err != nil || string(current) != damaged {
				t.Errorf("the damaged file was replaced: %v", err)
			}
			must(t, os.WriteFile(path, text, 0o600))
			if _, _, err = s.Session(cookie); err != nil {
				t.Errorf("after the repair: %v", err)
			}
		})
	}
}

// A missing directory has no accounts, and makes none. A link in the place of a file is not
// followed.
func TestMissing(t *testing.T) {
	s, _, _ := stores(t)
	_, err := s.Login(context.Background(), "ann", password, Origin{Address: ""})
	wantErr(t, "login", err, ErrWrong)
	if n, err := s.Check(); n != 0 || err != nil {
		t.Errorf("%d accounts, %v", n, err)
	}
	if _, err := os.Stat(s.tree.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	elsewhere := filepath.Join(t.TempDir(), "accounts.json")
	must(t, os.WriteFile(elsewhere, []byte(`{"version":1}`), 0o600))
	must(t, s.tree.Make())
	must(t, os.Symlink(elsewhere, s.tree.Path(accountsName)))
	if err := s.AddUser("ann", password, Admin, nil); err == nil {
		t.Error("a link was followed")
	}
}

// A file that was replaced within the resolution of its times is read again.
func TestReplacedAtOnce(t *testing.T) {
	s, other, _ := stores(t)
	must(t, s.AddUser("ann", "", Viewer, nil))
	for i := range 50 {
		role := Role(i % len(Roles))
		must(t, s.SetRole("ann", role, nil))
		if a, err := other.User("ann"); err != nil || a.Role != role {
			t.Fatalf("change %d: %v, %v", i, a.Role, err)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"ann": "ann", "Ann.B_c-d@Example.net": "ann.b_c-d@example.net", "7": "7", strings.Repeat("a", maxName): strings.Repeat("a", maxName),
		"": "", strings.Repeat("a", maxName+1): "", ".ann": "", "-ann": "", "@ann": "", "ann b": "", "ann\n": "", "änn": "", "an\u212a": "",
		`dom\ann`: "", "ann/../bob": "", "<b>": "", "ann\x00": "", "a,b": "",
	} {
		got, err := ParseName(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestPasswords(t *testing.T) {
	for _, c := range []struct {
		what, password string
		ok             bool
	}{
		{"short", "elevenchars", false},
		{"12 characters", "twelve chars", true},
		{"12 characters of two bytes", strings.Repeat("ä", 12), true},
		{"6 characters of two bytes", strings.Repeat("ä", 6), false},
		{"12 characters that are 6", strings.Repeat("a\u0308", 6), false},
		{"1000 characters of 4 bytes", strings.Repeat("\U0001F511", 1000), true},
		{"too long", strings.Repeat("a", maxPassword+1), false},
		{"the name", "Ann@Example.net", false},
		{"not UTF-8", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", false},
	} {
		if _, err := normalPassword("ann@example.net", c.password); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrPassword) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// Random edits through two Stores leave what a plain map has.
func TestAgainstMap(t *testing.T) {
	store, other, _ := stores(t)
	model := map[string]string{}
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "d", "e"}
	for range 300 {
		s := []*Store{store, other}[random.IntN(2)]
		name, role := names[random.IntN(len(names))], Role(random.IntN(len(Roles)))
		kind := model[name]
		kind, _, _ = strings.Cut(kind, " ")
		var err error
		want := true
		switch random.IntN(5) {
		case 0:
			err, want = s.AddUser(name, "", role, nil), kind == ""
			if want {
				model[name] = "user " + role.String()
			}
		case 1:
			_, err = s.AddToken(name, role, nil)
			if want = kind == ""; want {
				model[name] = "token " + role.String()
			}
		case 2:
			err, want = s.SetRole(name, role, nil), kind == "user"
			if want {
				model[name] = "user " + role.String()
			}
		case 3:
			err, want = s.Remove(name), kind == "user"
			if want {
				delete(model, name)
			}
		case 4:
			err, want = s.RemoveToken(name), kind == "token"
			if want {
				delete(model, name)
			}
		}
		if (err == nil) != want {
			t.Fatalf("%s: %v, want success %v", name, err, want)
		}
		all, err := other.List()
		must(t, err)
		got := map[string]string{}
		for _, a := range all {
			got[a.Name] = map[bool]string{true: "token ", false: "user "}[a.Token] + a.Role.String()
		}
		if fmt.Sprint(got) != fmt.Sprint(model) {
			t.Fatalf("the store has %v, want %v", got, model)
		}
	}
}

// Files of killed processes are removed.
func TestLeftovers(t *testing.T) {
	s, _, _ := stores(t)
	must(t, s.AddUser("ann", "", Viewer, nil))
	old := s.tree.Path(temporary + "old")
	long := time.Now().Add(-2 * time.Hour)
	must(t, errors.Join(os.WriteFile(old, nil, 0o600), os.Chtimes(old, long, long)))
	must(t, s.AddUser("bob", "", Viewer, nil))
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}
