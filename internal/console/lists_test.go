package console

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"spamgate/blocklist"
	"spamgate/blocklist/hits"
	"spamgate/blocklist/store"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/listedit"
	"spamgate/internal/managed"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// listsConfig is the configuration of a console with real lists.
const listsConfig = `
hostname = "mx.example"
[state]
dir = "state"
[guard]
protect = ["protected.example"]
[[list]]
name = "blocked"
managed = true
default = true
[[list]]
name = "allowed"
managed = true
type = "allow"
default = true
[[list]]
name = "allowed-for"
managed = true
type = "allow"
per_recipient = true
default = true
[[list]]
name = "file"
path = "file.txt"
`

// testLists is a console with real lists.
type testLists struct {
	*Console
	t     *testing.T
	dir   string
	store *store.Store
	hits  *hits.Log

	history *decisions.Recorder
}

// newTestLists returns a console with the lists of listsConfig and more of the configuration.
// Files are in the directory of the configuration.
func newTestLists(t *testing.T, more string, files map[string]string) *testLists {
	t.Helper()
	p := &testLists{t: t, dir: t.TempDir()}
	p.write("file.txt", "spam.example # a reason ## a note\nuser@listed.example\n")
	p.write("config.toml", listsConfig+more)
	for name, content := range files {
		p.write(name, content)
	}
	c, err := config.Load(filepath.Join(p.dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := managed.Make(c); err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.hits = hits.New(hits.Options{})
	lists.OnHit = p.hits.Record
	if p.store, err = store.Open(context.Background(), lists); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.store.Close() })
	current := func() *config.Config { return c }
	show, err := setup.ShowAddress(c)
	if err != nil {
		t.Fatal(err)
	}
	p.history, err = decisions.Open(decisions.Options{Dir: filepath.Join(c.State.Dir, "decisions"), Keep: 30 * 24 * time.Hour, MaxBytes: 1 << 30, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	reader := decisions.NewReader(filepath.Join(c.State.Dir, "decisions"))
	t.Cleanup(func() {
		p.history.Close()
		reader.Close()
	})
	users := t.TempDir()
	for name, content := range loggedIn().files {
		if err := os.WriteFile(filepath.Join(users, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.Console = testConsole(t, func(o *Options) {
		o.Accounts = accounts.Open(users)
		t.Cleanup(o.Accounts.Close)
		o.Config, o.Set, o.Gate = current, p.store.Set, &listsGate{p: p, config: current}
		o.Editor = managed.New(current, p.store)
		o.History, o.Show = reader, show
		o.Check = check.New(check.Options{Config: current, Set: p.store.Set})
		o.Logger = slog.New(slog.DiscardHandler)
	})
	return p
}

// refused adds rows to the history about messages that were refused.
func (p *testLists) refused(rows ...decisions.Decision) {
	p.t.Helper()
	for i := range rows {
		r := &rows[i]
		r.Time = time.Now().Add(-time.Hour + time.Duration(i)*time.Second)
		r.Last, r.Count, r.Event, r.Level, r.Listener, r.Action = r.Time, max(1, r.Count), "refused", "INFO", "listen", "reject"
		p.history.Record(r)
	}
	if err := p.history.Sync(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// write writes a file in the directory of the configuration.
func (p *testLists) write(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// rewrite writes a file of a list, and waits until the store has looked at it.
func (p *testLists) rewrite(name, content string) {
	p.t.Helper()
	p.write(name, content)
	_ = p.store.Rescan(p.t.Context()) // a list may be held
}

// as sends requests of a user, and returns the page. It wants the status.
func (p *testLists) as(name string, r *http.Request, want int) (*http.Response, string) {
	p.t.Helper()
	response, body := ask(p.Console, with(r, p.cookie(name)))
	if response.StatusCode != want {
		p.t.Fatalf("%s %s by %s: %s, want %d\n%s", r.Method, r.URL, name, response.Status, want, mainOf(body))
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") && body != "" && response.StatusCode != http.StatusSeeOther {
		checkPage(p.t, r.URL.String(), body)
	}
	return response, body
}

// cookie returns the cookie of a user's session.
func (p *testLists) cookie(name string) *http.Cookie {
	return &http.Cookie{Name: p.cookieName(), Value: loggedIn().cookies[name]}
}

// sessions are the files of accounts whose users have logged in.
type sessions struct {
	files   map[string][]byte
	cookies map[string]string
}

// loggedIn returns a session of each user. They are made once: hashing passwords takes time.
var loggedIn = sync.OnceValue(func() *sessions {
	dir, err := os.MkdirTemp("", "console-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	all := &sessions{map[string][]byte{}, map[string]string{}}
	store := accounts.Open(dir)
	defer store.Close()
	for _, name := range []string{"viewer", "helpdesk", "editor", "admin", "bound"} {
		err := addAccount(store, name)
		if err != nil {
			panic(err)
		}
		session, err := store.Login(context.Background(), name, password, accounts.Origin{Address: "192.0.2.1"})
		if err != nil {
			panic(err)
		}
		all.cookies[name] = session.Cookie
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		if err == nil {
			all.files[filepath.Base(file)], err = os.ReadFile(file)
		}
	}
	if err != nil {
		panic(err)
	}
	return all
})

// mainOf returns the content of a page.
func mainOf(body string) string {
	_, after, _ := strings.Cut(body, `<main id="main">`)
	before, _, _ := strings.Cut(after, "</main>")
	return before
}

// checkPage wants a page that is well formed, without inline script and style, with one main
// heading, a caption for each table and a label for each control.
func checkPage(t *testing.T, where, body string) {
	t.Helper()
	if err := checkHTML(body); err != nil {
		t.Errorf("%s: %v", where, err)
	}
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	count := map[string]int{}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		attrs := map[string]string{}
		for _, a := range n.Attr {
			attrs[a.Key] = a.Val
			leads := a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction"
			if leads && strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") || strings.Contains(a.Val, "ZgotmplZ") {
				t.Errorf("%s: <%s %s=%q>", where, n.Data, a.Key, a.Val)
			}
		}
		if n.Data == "input" || n.Data == "select" || n.Data == "textarea" {
			labelled := attrs["type"] == "hidden" || attrs["aria-label"] != ""
			for up := n.Parent; up != nil; up = up.Parent {
				labelled = labelled || up.Data == "label"
			}
			if !labelled {
				t.Errorf("%s: <%s name=%q> has no label", where, n.Data, attrs["name"])
			}
		}
	}
	if count["h1"] != 1 || count["table"] != count["caption"] {
		t.Errorf("%s: %d main headings, %d tables with %d captions", where, count["h1"], count["table"], count["caption"])
	}
}

// listsGate is the gate of a console in a test. Its lists are real.
type listsGate struct {
	admin.Gate // what no page asks
	p          *testLists
	config     func() *config.Config
}

func (g *listsGate) Status() admin.Status {
	return report.Status(g.config(), g.p.store.Set().Stats())
}
func (g *listsGate) Generation() uint64 { return g.p.store.Set().Generation() }

func (g *listsGate) Accept(ctx context.Context, by managed.By, list string, r admin.AcceptRequest) (admin.Accepted, error) {
	l, err := report.FindStats(g.p.store.Set(), list)
	if err == nil {
		_, err = report.HeldSum(l)
	}
	if err == nil {
		err = g.p.store.Accept(ctx, list)
	}
	g.record(by, "accept", list, r.Why, err)
	listStats, _ := report.FindStats(g.p.store.Set(), list)
	return admin.Accepted{Entries: listStats.Entries, Before: l.Entries}, err
}

func (g *listsGate) Pin(ctx context.Context, by managed.By, list string, r admin.PinRequest) (admin.PinResult, error) {
	pin, err := g.p.store.Pin(ctx, list, blocklist.Pin{Sum: r.SHA256, Entries: r.Entries, Since: time.Now(), Who: by.Name, Why: r.Why})
	g.record(by, "pin", list, r.Why, err)
	return admin.PinResult{Pinned: report.Pinned(&pin)}, err
}

func (g *listsGate) Unpin(ctx context.Context, by managed.By, list string, r admin.UnpinRequest) (admin.PinResult, error) {
	err := g.p.store.Unpin(ctx, list)
	g.record(by, "unpin", list, r.Why, err)
	return admin.PinResult{}, err
}

// record writes to the audit log who asked for what.
func (g *listsGate) record(by managed.By, command, list, why string, err error) {
	if err == nil {
		_ = (&listedit.Log{Dir: g.config().State.Dir}).Append(by.Record(command, list, "", why)) // the test reads it
	}
}

func (g *listsGate) Unused(ctx context.Context, list string, since time.Time, _ bool, begin func(admin.UnusedHeader) error, each func(admin.UnusedEntry) error) (admin.UnusedEnd, error) {
	return report.UnusedEntries(ctx, g.p.store.Set(), report.Unused{List: list, Since: since, Known: g.p.hits.Snapshot(list)}, begin, each)
}

// wantAll wants all texts in a page.
func wantAll(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q\n%s", want, mainOf(body))
		}
	}
}

// wantNone wants none of some texts in a page.
func wantNone(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, text := range all {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q\n%s", text, mainOf(body))
		}
	}
}

func TestListsPages(t *testing.T) {
	p := newTestLists(t, "", nil)
	_, body := p.as("viewer", get("/lists"), 200)
	wantAll(t, body, `href="/lists/file"`, "kept by the gate", "refuses", "lets in, by recipient", "4 lists")
	wantNone(t, body, "/entry/new")
	_, body = p.as("viewer", get("/lists/file"), 200)
	wantAll(t, body, "spam.example", "a reason", "a note", "user@listed.example", "/lists/file/export")
	wantNone(t, body, "Remove", "Add an entry")
	_, body = p.as("editor", get("/lists/blocked"), 200)
	wantAll(t, body, "The list has no entries yet.", "/entry/new?list=blocked&amp;type=block")
	p.as("viewer", get("/lists/nothing"), 404)
	p.as("viewer", get("/lists/file?at=1.2"), 400)
	p.as("viewer", get("/lists/file?at=7.0.1"), 200) // says that there is no such file
}

// TestListsNobody has a list with lines of which none lists anybody. Both pages and the API say so; of
// an empty managed list they do not.
func TestListsNobody(t *testing.T) {
	p := newTestLists(t, "", nil)
	p.rewrite("file.txt", "two words\n!spam.example\n/regexp/\n")
	const why = "it lists nobody (lines left out: 2, exceptions: 1); check whether its format is right"
	_, body := p.as("viewer", get("/lists"), 200)
	wantAll(t, body, `<td data-label="Left out" class="number">2</td>`)
	if n := strings.Count(body, "lists nobody"); n != 1 {
		t.Errorf("the page says of %d lists that they list nobody\n%s", n, mainOf(body))
	}
	_, body = p.as("viewer", get("/lists/file"), 200)
	wantAll(t, body, why)
	_, body = p.as("viewer", get("/lists/blocked"), 200)
	wantNone(t, body, "lists nobody")
	token, err := p.Accounts.AddToken("program", accounts.Viewer, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body = ask(p.Console, bearing(get("/api/v1/lists/file"), token))
	wantAll(t, body, `"lists_nobody":"`+why+`"`)
	_, body = ask(p.Console, bearing(get("/api/v1/lists/blocked"), token))
	wantAll(t, body, `"name":"blocked"`)
	wantNone(t, body, "lists_nobody")
}

// TestSearchList looks for entries in lists of both kinds.
func TestSearchList(t *testing.T) {
	p := newTestLists(t, "[[list]]\nname='exact'\npath='exact.txt'\nmatch='exact'\n", map[string]string{"exact.txt": "one.example\n.two.example\n"})
	p.rewrite("file.txt", "spam.example\n*.spam.example\n!good@mail.spam.example\nuser@\nother.example\na@deep.under.example\n<>\n")
	p.rewrite("state/managed/allowed-for.txt", "ann@b.example x@a.example\n@b.example a.example\n@c.example <>\n")
	for _, tt := range []struct {
		list, query string
		want        []string
	}{
		{"file", "q=user@mail.spam.example", []string{"spam.example", "*.spam.example", "user@"}},
		{"file", "q=good@mail.spam.example", []string{"!good@mail.spam.example", "spam.example", "*.spam.example"}},
		{"file", "q=spam.example", []string{"spam.example", "*.spam.example", "!good@mail.spam.example"}},
		{"file", "q=*.spam.example", []string{"*.spam.example", "spam.example", "!good@mail.spam.example"}},
		{"file", "q=under.example", []string{"a@deep.under.example"}},
		{"file", "q=USER%40", []string{"user@"}},
		{"file", "q=<>", []string{"<>"}},
		{"file", "q=nothing.example", nil},
		{"exact", "q=one.example", []string{"@one.example"}},
		{"exact", "q=x@sub.two.example", []string{"two.example"}},
		{"allowed-for", "q=x@a.example&for=ann@b.example", []string{"x@a.example", "a.example"}},
		{"allowed-for", "q=y@a.example&for=ann@b.example", []string{"a.example"}},
		{"allowed-for", "q=y@a.example&for=ann@c.example", nil},
		{"allowed-for", "for=ann@b.example", []string{"x@a.example", "a.example"}},
		{"allowed-for", "for=c.example", []string{"<>"}},
		{"allowed-for", "q=a.example", []string{"a.example", "x@a.example"}},
		{"blocked", "q=x@a.example", nil},
	} {
		_, body := p.as("viewer", get("/lists/"+tt.list+"?"+tt.query), 200)
		var got []string
		for _, row := range strings.Split(body, `data-label="Entry" class="address"><span>`)[1:] {
			entry, _, _ := strings.Cut(row, "</span>")
			got = append(got, html.UnescapeString(entry))
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(tt.want))
		if !slices.Equal(got, want) {
			t.Errorf("%s, %s: %q, want %q", tt.list, tt.query, got, want)
		}
	}
	_, body := p.as("viewer", get("/lists/file?q=a+b+c"), 400)
	wantAll(t, body, `role="alert"`)
}

// TestRemoveEntry removes an entry by its form.
func TestRemoveEntry(t *testing.T) {
	p := newTestLists(t, "", nil)
	p.change(t, "ann", "blocked", "x@a.example", "spam")
	p.rewrite("state/managed/allowed-for.txt", "ann@b.example x@a.example\nann@c.example x@a.example\n")
	_, body := p.as("editor", get("/lists/blocked"), 200)
	wantAll(t, body, "x@a.example", "ann", "/lists/blocked/remove?entry=x%40a.example")
	p.refused(decisions.Decision{ID: "A1", Sender: "x@a.example", Recipients: []string{"zoe@d.example"}, List: "blocked", Entry: "x@a.example"})
	_, body = p.as("editor", get("/lists/blocked/remove?entry=x%40a.example"), 200)
	wantAll(t, body, "Remove x@a.example from blocked", "spam", "<b>1 message</b> of the last 7 days would have been accepted")
	p.as("editor", get("/lists/blocked/remove?entry=y%40a.example"), 404)
	p.as("editor", get("/lists/file/remove?entry=spam.example"), 409)
	p.as("editor", post("/lists/blocked/remove", "entry", "x@a.example"), 400) // no reason
	p.as("editor", post("/lists/blocked/remove", "entry", "x@a.example", "why", strings.Repeat("x", 600)), 400)
	p.as("helpdesk", post("/lists/blocked/remove", "entry", "x@a.example", "why", "mistake"), 403)
	p.as("bound", post("/lists/blocked/remove", "entry", "x@a.example", "why", "mistake"), 403)
	p.as("bound", post("/lists/allowed-for/remove", "entry", "x@a.example", "for", "ann@c.example", "why", "mistake"), 403)
	p.as("bound", post("/lists/allowed-for/remove", "entry", "x@a.example", "for", "ann@b.example", "why", "mistake"), 303)
	response, _ := p.as("editor", post("/lists/blocked/remove", "entry", "x@a.example", "why", "mistake"), 303)
	_, body = p.as("editor", get(response.Header.Get("Location")), 200)
	wantAll(t, body, "removed x@a.example", `action="/undo/`, `name="back" value="/lists/blocked"`)
	_, body = p.as("viewer", get(response.Header.Get("Location")), 200)
	wantNone(t, mainOf(body), "removed x@a.example", `action="/undo/`) // what somebody else has done
	p.as("viewer", get("/lists/blocked?done=aaaaaaaaaaaaaaaa"), 200)
	p.as("viewer", get("/lists/blocked?done=%3Cscript%3E"), 200)
}

// change adds an entry to a managed list.
func (p *testLists) change(t *testing.T, who, list, entry, reason string) managed.Result {
	t.Helper()
	r, err := p.Editor.Add(t.Context(), managed.Account(who, "editor", managed.ThroughConsole), list,
		[]managed.NewEntry{{Name: managed.Name{Entry: entry}, Reason: reason}}, managed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// domains returns a list of some domains.
func domains(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "domain%d.example # number %d\n", i, i)
	}
	return b.String()
}

// TestHeldUpdate looks at a held update, accepts one and refuses one.
func TestHeldUpdate(t *testing.T) {
	p := newTestLists(t, "[[list]]\nname='long'\npath='long.txt'\n", map[string]string{"long.txt": domains(0, 2000)})
	_, body := p.as("viewer", get("/lists/long/held"), 200)
	wantAll(t, body, "Nothing is held")
	p.as("admin", post("/lists/long/held"), 409)
	p.as("admin", post("/lists/long/accept", "why", "it is right", "sum", ""), 409)
	p.rewrite("long.txt", domains(1000, 2000)+"new.example # came\n")
	_, body = p.as("viewer", get("/lists"), 200)
	wantAll(t, body, `href="/lists/long/held">held`)
	_, body = p.as("viewer", get("/lists/long/held"), 200)
	wantAll(t, body, "<b>1</b> added", "<b>1,000</b> removed", "<b>0</b> changed", "<b>1,000</b> the same", "new.example", "came", "Removed: 200 of 1,000", "An admin can accept")
	if n := strings.Count(between(body, "Removed: 200", "</ul>"), "<li>"); n != 200 {
		t.Errorf("%d removed entries are shown", n)
	}
	wantNone(t, body, "<form method=\"post\" action=\"/lists/long")
	_, body = p.as("admin", get("/lists/long/held"), 200)
	wantAll(t, body, "Accept: 1 added, 1,000 removed", "Refuse: pin the version that serves")
	sum := between(body, `name="sum" value="`, `"`)
	if sum == "" {
		t.Fatal("the form has no sum")
	}
	p.as("editor", post("/lists/long/accept", "why", "it is right", "sum", sum), 403)
	p.as("admin", post("/lists/long/accept", "sum", sum), 400)
	p.rewrite("long.txt", domains(1500, 2000))
	p.as("admin", post("/lists/long/accept", "why", "it is right", "sum", sum), 409) // another one is held now
	_, body = p.as("admin", get("/lists/long/held"), 200)
	p.as("admin", post("/lists/long/accept", "why", "it is right", "sum", between(body, `name="sum" value="`, `"`)), 303)
	_, body = p.as("viewer", get("/lists/long"), 200)
	wantAll(t, body, "domain1500.example")
	wantNone(t, body, "held</span>")

	p.rewrite("long.txt", domains(0, 2000)+"other.example\n")
	p.as("admin", post("/lists/long/pin", "why", "stolen"), 303)
	p.rewrite("long.txt", domains(0, 20))
	_, body = p.as("viewer", get("/lists/long"), 200)
	wantAll(t, body, "Pinned", "by admin: stolen")
	p.as("admin", post("/lists/long/unpin"), 400)
	p.as("admin", post("/lists/long/unpin", "why", "mended"), 303)
	p.as("admin", post("/lists/long/unpin", "why", "mended"), 409)

	changes, err := p.Editor.Changes(t.Context(), managed.ChangesQuery{List: "long"})
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, c := range changes.Changes {
		commands = append(commands, c.Command+" by "+c.By+" through "+c.Through+": "+c.Why)
	}
	if got, want := strings.Join(commands, "; "), "unpin by admin through console: mended; pin by admin through console: stolen; accept by admin through console: it is right"; got != want {
		t.Errorf("in the audit log: %s\nwant: %s", got, want)
	}
}

// between returns the text after one text and before another.
func between(s, after, before string) string {
	_, s, _ = strings.Cut(s, after)
	s, _, _ = strings.Cut(s, before)
	return html.UnescapeString(s)
}

// TestLongComparison compares long lists beside the page.
func TestLongComparison(t *testing.T) {
	p := newTestLists(t, "[[list]]\nname='long'\npath='long.txt'\n", map[string]string{"long.txt": domains(0, inline+1)})
	p.rewrite("long.txt", domains(0, 10))
	for path, want := range map[string]string{"/lists/long/held": "<b>10</b> the same", "/overlap": "No entry is in two lists.", "/lists/long/unused": "Matches are known since"} {
		_, body := p.as("viewer", get(path), 200)
		wantNone(t, body, want)
		p.as("viewer", post(path), 303)
		for end := time.Now().Add(time.Minute); !strings.Contains(body, want); {
			if time.Now().After(end) {
				t.Fatalf("%s does not end:\n%s", path, mainOf(body))
			}
			if _, body = p.as("viewer", get(path), 200); !strings.Contains(body, want) {
				wantAll(t, body, `http-equiv="refresh"`)
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// kept waits until the version of a list that serves is kept: that is done in the background.
func (p *testLists) kept(list string) {
	p.t.Helper()
	live, err := report.FindStats(p.store.Set(), list)
	if err != nil {
		p.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		versions, err := store.Versions(p.Config().State.Dir, list)
		if err != nil || time.Now().After(end) {
			p.t.Fatalf("the version of %s is not kept: %v, %v", list, versions, err)
		}
		if slices.ContainsFunc(versions, func(v store.VersionInfo) bool { return v.Sum == live.Sum }) {
			return
		}
	}
}

// TestVersions puts versions back: of a managed list its content, of others by a pin.
func TestVersions(t *testing.T) {
	p := newTestLists(t, "", nil)
	p.change(t, "ann", "blocked", "one.example", "first")
	p.kept("blocked")
	p.change(t, "ann", "blocked", "two.example", "second")
	p.kept("blocked")
	_, body := p.as("viewer", get("/lists/blocked/versions"), 200)
	wantAll(t, body, "serves")
	wantNone(t, body, "Put back")
	_, body = p.as("admin", get("/lists/blocked/versions"), 200)
	ask := html.UnescapeString(between(body, `href="/lists/blocked/rollback?version=`, `"`))
	if ask == "" {
		t.Fatal("no version can be put back")
	}
	_, body = p.as("admin", get("/lists/blocked/rollback?version="+ask), 200)
	wantAll(t, body, "Put back the version with 1 entry", "added two.example")
	wantNone(t, body, "added one.example")
	response, text := p.as("viewer", get("/lists/blocked/export?version="+ask), 200)
	if !strings.Contains(text, "one.example  # first") || strings.Contains(text, "two.example") || !strings.Contains(response.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the version is %q, %v", text, response.Header)
	}
	p.as("admin", get("/lists/blocked/rollback?version=nothing"), 404)
	p.as("editor", post("/lists/blocked/rollback", "version", ask, "why", "two was wrong"), 403)
	p.as("admin", post("/lists/blocked/rollback", "version", ask), 400)
	p.as("admin", post("/lists/blocked/rollback", "version", ask, "why", "two was wrong"), 303)
	_, text = p.as("viewer", get("/lists/blocked/export"), 200)
	if !strings.Contains(text, "one.example") || strings.Contains(text, "two.example") {
		t.Errorf("after the rollback the list is %q", text)
	}
	p.kept("blocked")
	versions, err := store.Versions(p.Config().State.Dir, "blocked")
	if err = errors.Join(err, os.Remove(filepath.Join(p.Config().State.Dir, "managed", "blocked.txt"))); err != nil || len(versions) == 0 {
		t.Fatal(err)
	}
	p.as("admin", post("/lists/blocked/rollback", "version", versions[0].ID, "why", "the file is gone"), 303)
	if _, text = p.as("viewer", get("/lists/blocked/export"), 200); !strings.Contains(text, "one.example") {
		t.Errorf("after the rollback of a missing file the list is %q", text)
	}

	p.kept("file")
	p.rewrite("file.txt", "other.example\n")
	p.kept("file")
	_, body = p.as("admin", get("/lists/file/versions"), 200)
	version := between(body, `href="/lists/file/rollback?version=`, `"`)
	_, body = p.as("admin", get("/lists/file/rollback?version="+version), 200)
	wantAll(t, body, `action="/lists/file/pin"`, "Pin to the version with 2 entries")
	p.as("admin", post("/lists/file/pin", "version", version, "why", "the new one is wrong"), 303)
	_, body = p.as("viewer", get("/lists/file?q=user@listed.example"), 200)
	wantAll(t, body, "1 entry found", "Pinned")
	p.as("admin", post("/lists/file/rollback", "version", version, "why", "no managed list"), 409)
}

// TestExportList downloads lists with several files, and packed ones.
func TestExportList(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprintln(w, "packed.example")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := newTestLists(t, "[[list]]\nname='several'\npath='several-*.txt'\n[[list]]\nname='packed'\npath='packed.gz'\n",
		map[string]string{"several-a.txt": "a.example\n", "several-b.txt": "b.example\n", "packed.gz": z.String()})
	_, text := p.as("viewer", get("/lists/several/export"), 200)
	if !strings.Contains(text, "several-a.txt\na.example\n# ") || !strings.HasSuffix(text, "several-b.txt\nb.example\n") {
		t.Errorf("several files are %q", text)
	}
	if _, text = p.as("viewer", get("/lists/packed/export"), 200); text != "packed.example\n" {
		t.Errorf("a packed list is %q", text)
	}
	p.as("viewer", get("/lists/packed/export?version=..%2f.."), 404)
}

// TestDNSList shows a list that is asked over DNS.
func TestDNSList(t *testing.T) {
	p := newTestLists(t, "[[list]]\nname='dns'\ndns_zone='secretkey1234567890abcdef.dbl.example.org'\n", nil)
	_, body := p.as("viewer", get("/lists/dns"), 200)
	wantAll(t, body, "Asked over DNS", "dbl.example.org")
	wantNone(t, body, "secretkey")
	_, body = p.as("viewer", get("/lists"), 200)
	wantAll(t, body, "in DNS")
	wantNone(t, body, "secretkey")
	for _, path := range []string{"held", "unused", "versions", "export"} {
		p.as("viewer", get("/lists/dns/"+path), 404)
	}
	p.as("admin", post("/lists/dns/pin", "why", "x"), 404)
}

// TestHostileLists shows texts of lists as they are, and runs none of them.
func TestHostileLists(t *testing.T) {
	bad := "<script>alert(1)</script>\u202e\" onload=\"x"
	p := newTestLists(t, "[[list]]\nname='hostile'\npath='hostile.txt'\n", map[string]string{
		"hostile.txt": "a.example # " + bad + " ## " + bad + "\n" + bad + "\n\"<img src=x onerror=alert(1)>\"@b.example # x\n"})
	for _, path := range []string{"/lists/hostile", "/lists/hostile?q=" + url.QueryEscape(bad), "/lists/hostile?q=%00", "/lists/hostile?at=" + url.QueryEscape(bad), "/lists/" + url.PathEscape(bad), "/lists/hostile?done=" + url.QueryEscape(bad)} {
		response, body := ask(p.Console, with(get(path), p.cookie("viewer")))
		checkPage(t, path, body)
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") || strings.Contains(body, "\u202e") {
			t.Errorf("%s: %s\n%s", path, response.Status, mainOf(body))
		}
	}
}

// TestLongListPages pages through a list of SPAMGATE_ENTRIES entries, and searches it.
func TestLongListPages(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("SPAMGATE_ENTRIES"))
	count = max(count, 50_000)
	p := newTestLists(t, "[[list]]\nname='long'\npath='long.txt'\n", map[string]string{"long.txt": domains(0, count)})
	cookie := login(t, p.Console, "viewer")
	for _, path := range []string{
		"/lists", "/lists/long", "/lists/long?at=0.1099511627776.0-", fmt.Sprintf("/lists/long?at=0.%d.0", count*10),
		"/lists/long?q=user@domain777.example", "/lists/long?q=domain778.example", "/lists/long/versions", "/lists/long/held", "/lists/long/unused", "/overlap",
	} {
		began := time.Now()
		response, body := ask(p.Console, with(get(path), cookie))
		t.Logf("%s: %v", path, time.Since(began).Round(100*time.Microsecond))
		if response.StatusCode != 200 {
			t.Errorf("%s: %s\n%s", path, response.Status, body)
		}
		checkPage(t, path, body)
	}
}

// TestAbortedAnswer cuts the connection of an answer that cannot be completed.
func TestAbortedAnswer(t *testing.T) {
	c := testConsole(t)
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v", p)
		}
	}()
	rt := route{"GET", "/", anyone, func(*exchange) error { panic(http.ErrAbortHandler) }}
	c.serve(rt).ServeHTTP(nil, get("/"))
}
