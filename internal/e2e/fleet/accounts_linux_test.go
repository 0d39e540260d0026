package fleet

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
)

// keeper is a gate of a fleet with a console.
type keeper struct {
	*member
	url string
}

// consoleDir returns the directory of a gate with a console that has not started yet.
func consoleDir(t *testing.T, n *harness.NATS, name string) (dir, address string) {
	t.Helper()
	s := setup(n, name)
	addr := harness.FreeAddr(t)
	s.Tables += harness.ConsoleTable(addr)
	return s.Dir(t), "http://" + addr
}

// startKeepers starts gates with a console, and waits until all have the same accounts.
func startKeepers(t *testing.T, n *harness.NATS, names ...string) []*keeper {
	t.Helper()
	var all []*keeper
	for _, name := range names {
		dir, address := consoleDir(t, n, name)
		all = append(all, &keeper{&member{harness.Serve(t, dir), name}, address})
	}
	waitAccounts(t, all...)
	return all
}

// accounts returns the state of the accounts on a gate.
func accountsOf(f admin.Fleet) (s fleet.ListStatus) {
	if i := slices.IndexFunc(f.Lists, func(l fleet.ListStatus) bool { return l.Name == fleet.AccountsList }); i >= 0 {
		s = f.Lists[i]
	}
	return s
}

// waitAccounts waits until all gates have the same accounts.
func waitAccounts(t *testing.T, sites ...*keeper) {
	t.Helper()
	harness.WaitFor(t, "all gates have the same accounts", func() bool {
		first := accountsOf(sites[0].status())
		for _, s := range sites {
			a := accountsOf(s.status())
			if a.Sequence == 0 || a.Sequence != first.Sequence || a.Behind || a.Error != "" || s.accounts() != sites[0].accounts() {
				return false
			}
		}
		return true
	})
}

// accounts returns the file with the accounts.
func (s *keeper) accounts() string {
	s.T.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "state", "console", "accounts.json"))
	if err != nil {
		s.T.Fatal(err)
	}
	return string(text)
}

var noRedirects = &http.Client{Timeout: harness.WorkTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// login logs a user in, and returns the cookie of the session; nil if the password is wrong.
func (s *keeper) login(name, password string) *http.Cookie {
	s.T.Helper()
	response, err := noRedirects.PostForm(s.url+"/login", url.Values{"name": {name}, "password": {password}})
	if err != nil {
		s.T.Fatal(err)
	}
	response.Body.Close()
	if cookies := response.Cookies(); response.StatusCode == http.StatusSeeOther && len(cookies) > 0 {
		return cookies[0]
	}
	return nil
}

// in reports whether a session goes on.
func (s *keeper) in(cookie *http.Cookie) bool {
	s.T.Helper()
	r, err := http.NewRequest(http.MethodGet, s.url+"/account", nil)
	if err != nil {
		s.T.Fatal(err)
	}
	r.AddCookie(cookie)
	response, err := noRedirects.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// opens reports whether a token opens the API.
func (s *keeper) opens(token string) bool {
	s.T.Helper()
	status, err := harness.API{URL: s.url, Token: token}.Do(http.MethodGet, "/api/v1/lists", nil, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return status == http.StatusOK
}

// passwd changes the password of a user.
func (s *keeper) passwd(name, password string) {
	s.T.Helper()
	cmd := exec.Command(harness.Binary(s.T), "console", "user", "passwd", name, "--password-stdin")
	cmd.Dir, cmd.Stdin = s.Dir, strings.NewReader(password+"\n")
	if out, errs, code := harness.Run(s.T, cmd); code != 0 {
		s.T.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
}

// kill kills a gate.
func (m *member) kill() {
	m.Kill()
	<-m.Exited
	m.Ended = true
}

// TestAccounts changes accounts on three gates, also while one is down, and while the fleet's
// server is.
func TestAccounts(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	sites := startKeepers(t, n, "mx1", "mx2", "mx3")
	mx1, mx2, mx3 := sites[0], sites[1], sites[2]
	mx1.AddUser("ann", "admin")
	waitAccounts(t, sites...)
	cookie := mx2.login("ann", harness.Password)
	if cookie == nil {
		t.Fatal("ann cannot log in elsewhere")
	}
	token := mx3.AddToken("ci", "viewer")
	harness.WaitFor(t, "the token opens the API of all gates", func() bool { return mx1.opens(token) && mx2.opens(token) })

	var adding sync.WaitGroup
	const each = 3
	for _, s := range sites {
		adding.Go(func() {
			for i := range each {
				s.Command(t, 0, "console", "user", "add", fmt.Sprintf("%s-%d", s.name, i), "--no-password")
			}
		})
	}
	adding.Wait()
	waitAccounts(t, sites...)
	if list := mx2.Command(t, 0, "console", "user", "list"); strings.Count(list, "-") < each*len(sites) || !strings.Contains(list, "mx3-2") {
		t.Error(list)
	}

	mx3.Command(t, 0, "console", "session", "end", "ann")
	harness.WaitFor(t, "the session ends on another gate", func() bool { return !mx2.in(cookie) })
	cookie = mx2.login("ann", harness.Password)
	mx3.passwd("ann", "another good password")
	harness.WaitFor(t, "a new password ends the session", func() bool { return !mx2.in(cookie) })
	waitAccounts(t, sites...)
	if mx1.login("ann", "another good password") == nil {
		t.Error("the new password is not that of all gates")
	}
	mx1.Command(t, 0, "console", "token", "remove", "ci")
	harness.WaitFor(t, "the token opens nothing", func() bool { return !mx2.opens(token) && !mx3.opens(token) })

	// What happens while a gate is down.
	cookie = mx3.login("ann", "another good password")
	token = mx3.AddToken("ci", "viewer")
	waitAccounts(t, sites...)
	mx3.kill()
	mx1.Command(t, 0, "console", "token", "remove", "ci")
	mx1.Command(t, 0, "console", "session", "end", "ann")
	mx3.start()
	harness.WaitFor(t, "the gate has learned it", func() bool { return !mx3.in(cookie) && !mx3.opens(token) })
	waitAccounts(t, sites...)

	// Without the fleet's server nothing changes, and logins go on.
	n.Kill()
	before := mx1.accounts()
	if text := mx1.Command(t, 2, "console", "user", "add", "late", "--no-password"); !strings.Contains(text, "the edit is refused: the fleet cannot be reached") {
		t.Error(text)
	}
	if mx1.login("ann", "another good password") == nil || mx1.accounts() != before {
		t.Error("the accounts have changed")
	}
	if text := mx1.Command(t, 2, "console", "session", "end", "ann"); !strings.Contains(text, "not those on the other gates") {
		t.Error(text)
	}
	n.Start()
	harness.WaitFor(t, "the fleet is back", func() bool { return mx1.status().State == admin.FleetConnected })
	mx1.Command(t, 0, "console", "user", "add", "late", "--no-password")
	waitAccounts(t, sites...)

	if text := mx1.Command(t, 2, "console", "user", "set", "ann", "--role", "viewer"); !strings.Contains(text, "no user would be an admin") {
		t.Error(text)
	}
	if strings.Count(mx1.accounts(), "$argon2id$") != 1 {
		t.Errorf("the hashes are not where the next lines look for them:\n%s", mx1.accounts())
	}
	for _, s := range sites {
		for _, args := range [][]string{{"fleet", "status", "--json"}, {"fleet", "diff", "--all", "--json"}, {"lists", "changes", "--json"}, {"console", "user", "list", "--json"}} {
			cmd := exec.Command(harness.Binary(t), args...)
			cmd.Dir = s.Dir
			if out, _, _ := harness.Run(t, cmd); strings.Contains(out, "argon2id") {
				t.Errorf("%v prints a hash", args)
			}
		}
		if strings.Contains(s.Log.String(), "argon2id") {
			t.Errorf("the log of %s has a hash", s.name)
		}
	}
}

// beforeFleet does what an admin did before the accounts were to be shared.
func (s *keeper) beforeFleet(do func()) {
	s.T.Helper()
	file := filepath.Join(s.Dir, "config.toml")
	text, err := os.ReadFile(file)
	if err != nil {
		s.T.Fatal(err)
	}
	harness.WriteFile(s.T, file, strings.Replace(string(text), "[console]\n", "[console]\nshare_accounts = false\n", 1))
	do()
	harness.WriteFile(s.T, file, string(text))
}

// TestAccountsFirst makes accounts on gates that are not in the fleet yet: one that has not
// started, and one without its state directory, which waits for the fleet's lists. Only --first
// makes one, and only the first.
func TestAccountsFirst(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	dir, address := consoleDir(t, n, "mx1")
	mx1 := &keeper{&member{&harness.Gate{T: t, Dir: dir}, "mx1"}, address}
	add := func(s *keeper, want int, name string, more ...string) string {
		t.Helper()
		return s.Command(t, want, append([]string{"console", "user", "add", name, "--no-password", "--role", "admin"}, more...)...)
	}
	const noGate = "no gate is running here, and the accounts are those of the fleet"
	if text := add(mx1, 2, "ann"); !strings.Contains(text, noGate) || !strings.Contains(text, "--first") {
		t.Error(text)
	}
	if text := mx1.Command(t, 2, "console", "token", "add", "ci"); !strings.Contains(text, noGate) {
		t.Error(text)
	}
	add(mx1, 0, "ann", "--first")
	const notFirst = "--first makes the very first account of a fleet"
	if text := add(mx1, 2, "bob", "--first"); !strings.Contains(text, notFirst) {
		t.Error(text)
	}
	mx1.Gate = harness.Serve(t, dir)
	waitAccounts(t, mx1)
	add(mx1, 0, "bob")
	mx1.Stop()
	if err := os.Remove(filepath.Join(dir, "state", "console", "accounts.json")); err != nil {
		t.Fatal(err)
	}
	if text := add(mx1, 2, "eve", "--first"); !strings.Contains(text, notFirst) {
		t.Error(text)
	}

	// A gate that has lost everything waits for the fleet, which does not answer.
	n.Kill()
	if err := os.RemoveAll(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	mx1.Gate = harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
	mx1.WaitRecord("waiting for the first version of shared lists")
	const starting = "the gate is starting, and waits for the lists of its fleet"
	for _, args := range [][]string{{"console", "user", "add", "eve", "--no-password"}, {"console", "token", "add", "ci"}, {"health"}, {"fleet", "status"}, {"lists", "add", "bad.example", "--list", "shared", "--reason", "spam"}} {
		if text := mx1.Command(t, 2, args...); !strings.Contains(text, starting) {
			t.Errorf("%q: %s", args, text)
		}
	}
	n.Start()
	mx1.Addr = mx1.WaitListening()
	waitAccounts(t, mx1)
	if list := mx1.Command(t, 0, "console", "user", "list"); !strings.Contains(list, "ann") || !strings.Contains(list, "bob") || strings.Contains(list, "eve") {
		t.Error(list)
	}
}

// TestAccountsBefore starts gates that had accounts before they were a fleet, and one that
// leaves it.
func TestAccountsBefore(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	var sites []*keeper
	for _, name := range []string{"mx1", "mx2"} {
		dir, address := consoleDir(t, n, name)
		s := &keeper{&member{&harness.Gate{T: t, Dir: dir}, name}, address}
		s.beforeFleet(func() {
			s.AddUser("ann", "admin") // with a hash of its own
			s.Command(t, 0, "console", "user", "add", "only-"+name, "--no-password", "--role", "editor")
		})
		s.Gate = harness.Serve(t, dir)
		sites = append(sites, s)
		harness.WaitFor(t, "the gate has joined", func() bool {
			a := accountsOf(s.status())
			return a.Sequence > 0 || strings.Contains(a.Error, "differs from the fleet's")
		})
	}
	mx1, mx2 := sites[0], sites[1]
	if a := accountsOf(mx2.status()); !strings.Contains(a.Error, "accounts here that the fleet does not have alike: 2") {
		t.Errorf("%+v", a)
	}
	if text := mx2.Command(t, 2, "console", "user", "add", "eve", "--no-password"); !strings.Contains(text, "spamgate fleet join decides") {
		t.Error(text)
	}
	mx2.Command(t, 0, "fleet", "join", fleet.AccountsList, "--merge", "--reason", "one set")
	waitAccounts(t, sites...)
	if list := mx1.Command(t, 0, "console", "user", "list"); !strings.Contains(list, "only-mx1") || !strings.Contains(list, "only-mx2") {
		t.Error(list)
	}
	mx2.Command(t, 0, "fleet", "leave")
	mx2.Command(t, 0, "console", "user", "add", "alone", "--no-password")
	mx2.Stop()
	mx2.Command(t, 0, "console", "user", "add", "alone-too", "--no-password")
	mx1.Stop()
	if text := mx1.Command(t, 2, "console", "user", "add", "eve", "--no-password"); !strings.Contains(text, "no gate is running here, and the accounts are those of the fleet") {
		t.Error(text)
	}
	mx1.start()
	mx2.start()
	if text := mx2.Command(t, 1, "fleet", "join"); !strings.Contains(text, "list "+fleet.AccountsList+": NOT DONE: ") {
		t.Error(text)
	}
	mx2.Command(t, 0, "fleet", "join", "--take")
	waitAccounts(t, sites...)
	if list := mx2.Command(t, 0, "console", "user", "list"); strings.Contains(list, "alone") || !strings.Contains(list, "only-mx2") {
		t.Error(list)
	}
}

// TestAccountsKilled kills gates while they add users. All that were acknowledged are on both in
// the end. SPAMGATE_ACCOUNTS_KILLS is how often.
func TestAccountsKilled(t *testing.T) {
	t.Parallel()
	rounds := 3
	if count, err := strconv.Atoi(os.Getenv("SPAMGATE_ACCOUNTS_KILLS")); err == nil {
		rounds = count
	}
	n := harness.StartNATS(t)
	sites := startKeepers(t, n, "mx1", "mx2")
	added := map[string]bool{}
	for round := range rounds {
		victim, other := sites[round%2], sites[(round+1)%2]
		var mu sync.Mutex
		var adding sync.WaitGroup
		add := func(s *keeper, i int) bool {
			name := fmt.Sprintf("%s-%d-%d", s.name, round, i)
			cmd := exec.Command(harness.Binary(t), "console", "user", "add", name, "--no-password")
			cmd.Dir = s.Dir
			_, _, code := harness.Run(t, cmd)
			if code == 0 {
				mu.Lock()
				added[name] = true
				mu.Unlock()
			}
			return code == 0
		}
		adding.Go(func() {
			for i := 0; i < 1000 && add(victim, i); i++ {
			}
		})
		adding.Go(func() {
			for i := range 5 {
				if !add(other, i) {
					t.Errorf("round %d: the other gate refuses", round)
				}
			}
		})
		time.Sleep(time.Duration(50+round*37%400) * time.Millisecond) // where it is killed is left to chance
		victim.kill()
		adding.Wait()
		victim.start()
		waitAccounts(t, sites...)
	}
	for _, s := range sites {
		list := s.Command(t, 0, "console", "user", "list", "--json")
		for name := range added {
			if !strings.Contains(list, strconv.Quote(name)) {
				t.Errorf("%s lacks %s", s.name, name)
			}
		}
	}
	t.Logf("%d kills, %d users", rounds, len(added))
}
