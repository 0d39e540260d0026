package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/decisions"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/fleet"
	"spamgate/internal/fleetsearch"
)

// site is a member with a console.
type site struct {
	*member
	api harness.API // as an admin
}

// startSites starts gates of a fleet that refuse spam.example, each with a console.
func startSites(t *testing.T, n *harness.NATS, names ...string) (all []site) {
	t.Helper()
	var members []*member
	for _, name := range names {
		s, addr := setup(n, name), harness.FreeAddr(t)
		s.Tables += harness.ConsoleTable(addr)
		members = append(members, &member{harness.LaunchGate(t, s), name})
		all = append(all, site{members[len(members)-1], harness.API{URL: "http://" + addr}})
	}
	for i, m := range members {
		m.Addr = m.WaitListening()
		all[i].api.Token = m.AddToken("tests-"+m.name, "admin") // of one set of accounts
	}
	waitEqual(t, members...)
	members[0].Lists(t, 0, "add", "spam.example", "--reason", "unsolicited mail")
	for _, s := range all {
		harness.WaitFor(t, "all members are shown", func() bool { return len(s.status().Members) == len(names) })
	}
	return all
}

// refuse sends mail that the gate refuses, and returns its id.
func (s site) refuse(t *testing.T, from, to string) string {
	t.Helper()
	s.refuses(t, "probe@spam.example") // the list may be on its way
	reply, err := harness.MustDial(t, s.Addr).Verdict(from, to)
	if err != nil {
		t.Fatal(err)
	}
	id := harness.WantRefusal(t, reply, from, "shared", "unsolicited mail")
	s.api.WaitRow(t, id)
	return id
}

// find asks the API for decisions.
func (s site) find(t *testing.T, api harness.API, query string) (p fleetsearch.Page) {
	t.Helper()
	api.Must(t, http.StatusOK, "GET", "/api/v1/decisions?"+query, nil, &p)
	return p
}

// TestConsole searches the mail of two gates through the API of one, also for an account that is bound
// to a domain, and while the other gate or the fleet's server is dead.
func TestConsole(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	sites := startSites(t, n, "mx1", "mx2")
	site, two := sites[0], sites[1]
	own := site.refuse(t, "a@spam.example", "ann@example.net")
	ours, others := two.refuse(t, "b@spam.example", "ann@example.net"), two.refuse(t, "c@spam.example", "secret@other.example")

	page := site.find(t, site.api, "recipient=ann@example.net")
	if got := shown(page); got != "mx2 "+ours+", mx1 "+own || !slices.Equal(page.Gates, []string{"mx1", "mx2"}) {
		t.Errorf("%s, %+v", got, page)
	}
	for query, want := range map[string]string{
		"recipient=secret@other.example": "mx2 " + others, "gate=mx2&sender=b@spam.example": "mx2 " + ours, "gate=mx1&sender=b@spam.example": "", "id=" + others: "mx2 " + others,
	} {
		if got := shown(site.find(t, site.api, query)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	bound := harness.API{URL: site.api.URL, Token: site.AddToken("bound", "editor", "example.net")}
	for query, want := range map[string]string{
		"sender=b@spam.example": "mx2 " + ours, "sender=c@spam.example": "", "recipient=secret@other.example": "", "id=" + others: "", "gate=mx2&id=" + others: "", "gate=mx2&list=shared&id=" + ours: "mx2 " + ours,
	} {
		if got := shown(site.find(t, bound, query)); got != want {
			t.Errorf("bound, %s: %q, want %q", query, got, want)
		}
	}
	if text := fmt.Sprint(site.find(t, bound, "limit=1000")); strings.Contains(text, "other.example") || strings.Contains(text, others) {
		t.Errorf("bound: %s", text)
	}
	var f admin.Fleet
	site.api.Must(t, http.StatusOK, "GET", "/api/v1/fleet", nil, &f)
	if f.State != admin.FleetConnected || len(f.Members) != 2 || len(f.Lists) == 0 {
		t.Errorf("%+v", f)
	}
	if status, err := bound.Do("GET", "/api/v1/fleet", nil, nil); status != http.StatusForbidden || err != nil {
		t.Errorf("bound: status %d, %v", status, err)
	}

	two.Kill()
	<-two.Exited
	two.Ended = true
	began := time.Now()
	page = site.find(t, site.api, "recipient=ann@example.net")
	if got := shown(page); got != "mx1 "+own || !slices.Equal(page.Missing, []string{"mx2"}) {
		t.Errorf("%s, %+v", got, page)
	}
	t.Logf("with a dead member: %v", time.Since(began))
	n.Kill()
	harness.WaitFor(t, "the gate knows that the server is dead", func() bool { return site.status().State == admin.FleetNotConnected })
	began = time.Now()
	page = site.find(t, site.api, "recipient=ann@example.net")
	if got := shown(page); got != "mx1 "+own || !strings.HasPrefix(page.FleetError, "not connected: ") {
		t.Errorf("%s, %+v", got, page)
	}
	t.Logf("without the fleet: %v", time.Since(began))
	var refused struct{ Error string }
	status, err := site.api.Do("POST", "/api/v1/lists/shared/entries", map[string]string{"entry": "late.example", "reason": "a test"}, &refused)
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(refused.Error, "he edit is refused: the fleet cannot be reached: ") {
		t.Errorf("an edit without the fleet: status %d, %q, %v", status, refused.Error, err)
	}
}

// shown returns gates and ids of a page.
func shown(p fleetsearch.Page) string {
	var all []string
	for _, d := range p.Decisions {
		all = append(all, d.Gate+" "+d.ID)
	}
	return strings.Join(all, ", ")
}

// TestHostileMember has a member that answers questions with what was not asked for, and that
// shows hostile text of itself.
func TestHostileMember(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	site := startSites(t, n, "mx1")[0]
	site.refuse(t, "a@spam.example", "ann@example.net")
	own := shown(site.find(t, site.api, "list=shared"))
	const hostile = "<script>alert(1)</script>\x1b[31m\u202e"
	evil, err := fleet.Open(fleet.Options{Name: "evil", Version: hostile, Servers: []string{"nats://" + n.Addr}, StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer evil.Close()
	harness.WaitFor(t, "the member is shown", func() bool { return len(site.status().Members) == 2 })
	answers := make(chan []byte, 1)
	if err := evil.Handle(fleetsearch.Subject, func(context.Context, []byte) ([]byte, error) { return <-answers, nil }); err != nil {
		t.Fatal(err)
	}
	bound := harness.API{URL: site.api.URL, Token: site.AddToken("bound", "viewer", "example.net")}
	row := func(d decisions.Decision) string {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	forged := decisions.Decision{ID: "FQRGEDAAAAAA", Time: time.Now(), Event: hostile, Sender: hostile, Recipients: []string{"ann@example.net"}, Action: "reject", List: "shared", Reason: hostile}
	elsewhere := forged
	elsewhere.Recipients = []string{"secret@other.example"}
	for what, tt := range map[string]struct{ answer, want string }{
		"another domain's row": {`{"decisions":[` + row(elsewhere) + `],"places":["AQEBAQ"]}`, own},
		"a row as asked for":   {`{"decisions":[` + row(forged) + `],"places":["AQEBAQ"]}`, "evil FQRGEDAAAAAA, " + own},
		"rows without end":     {`{"decisions":[` + strings.Repeat(row(forged)+",", 600) + row(forged) + `],"places":[]}`, own},
		"not JSON":             {"\x00\x01", own},
		"nothing":              {"", own},
	} {
		answers <- []byte(tt.answer)
		if got := shown(site.find(t, bound, "list=shared")); got != tt.want {
			t.Errorf("%s: %s, want %s", what, got, tt.want)
		}
	}
	answers <- []byte(`{"decisions":[` + row(forged) + `],"places":["AQEBAQ"]}`)
	if message := site.Command(t, 0, "decisions", "find") + site.Command(t, 0, "fleet", "status"); strings.ContainsAny(message, "\x1b\u202e") {
		t.Errorf("%q", message)
	}
}
