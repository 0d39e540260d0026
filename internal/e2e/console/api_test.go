package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

const (
	bob = "bob@spam.example"
	ann = "ann@example.net"
)

// ask sends a request of the API, and fails the test unless the status is the wanted one and
// the answer is as docs/openapi.json says. The pattern is the path there; "": the path itself.
func ask(t testing.TB, api harness.API, want int, method, path, pattern string, body any) object {
	t.Helper()
	if pattern == "" {
		pattern, _, _ = strings.Cut(path, "?")
	}
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		send = strings.NewReader(string(text))
	}
	r, err := http.NewRequest(method, api.URL+path, send)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+api.Token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		t.Fatalf("%s %s: status %d, want %d, %v\n%s", method, path, response.StatusCode, want, err, answer)
	}
	described(t, method, pattern, response.StatusCode, response.Header.Get("Content-Type"), answer)
	var result object
	if err := json.Unmarshal(answer, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

const (
	entriesPattern = "/api/v1/lists/{name}/entries"
	entryPattern   = "/api/v1/lists/{name}/entries/{entry}"
	undoPattern    = "/api/v1/changes/{id}/undo"
)

// refuse sends mail that is refused, and returns its id once the history has it.
func (s *site) refuse(t testing.TB, from, to, list, reason string) string {
	t.Helper()
	reply, err := harness.MustDial(t, s.Addr).Verdict(from, to)
	if err != nil {
		t.Fatal(err)
	}
	id := harness.WantRefusal(t, reply, from, list, reason)
	s.api.WaitRow(t, id)
	return id
}

// passes fails the test unless mail passes now.
func (s *site) passes(t testing.TB, from, to string) {
	t.Helper()
	if reply, err := harness.MustDial(t, s.Addr).Verdict(from, to); err != nil || reply[0] != '2' {
		t.Fatalf("mail from %s: %q, %v", from, reply, err)
	}
}

// TestRoundTrip lets a refused sender in over the API, and undoes it.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	id := s.refuse(t, bob, ann, "blocked-file", "unsolicited mail")

	row := ask(t, s.api, 200, "GET", "/api/v1/decisions?id="+strings.ToLower(id), "", nil)["decisions"].([]any)[0].(object)
	if row["sender"] != bob || row["list"] != "blocked-file" || row["action"] != "reject" {
		t.Errorf("the row is %v", row)
	}
	desk := s.as("desk", "helpdesk")
	entry := object{"entry": bob, "reason": "a customer", "until": "1h"}
	added := ask(t, desk, 201, "POST", "/api/v1/lists/allowed/entries", entriesPattern, entry)
	s.passes(t, bob, ann)
	if again := ask(t, desk, 200, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "Bob@SPAM.example", "reason": "a customer", "until": added["until"]}); again["what"] != "already listed" {
		t.Errorf("the same entry again: %v", again)
	}
	current := ask(t, s.api, 200, "GET", "/api/v1/check?sender="+bob, "", nil)
	if current["action"] != "accept" {
		t.Errorf("check says %v", current)
	}
	ask(t, s.api, 200, "GET", "/api/v1/check?trace=1&sender="+bob+"&recipient="+ann+"&client=192.0.2.1&helo=mail.example", "", nil)

	change := added["change"].(string)
	changes := ask(t, desk, 200, "GET", "/api/v1/changes?list=allowed&entry="+bob+"&by=desk&since=1h", "", nil)["changes"].([]any)
	if first := changes[0].(object); first["id"] != change || first["by"] != "desk" || first["through"] != "api" {
		t.Errorf("the changes are %v", changes)
	}
	ask(t, desk, 200, "POST", "/api/v1/changes/"+change+"/undo", undoPattern, object{"why": "a mistake"})
	s.refuse(t, bob, ann, "blocked-file", "unsolicited mail")
	ask(t, desk, 409, "POST", "/api/v1/changes/"+change+"/undo", undoPattern, object{})

	top := ask(t, s.api, 200, "GET", "/api/v1/decisions/top?by=senders&since=1d", "", nil)["top"].([]any)
	if len(top) != 1 || top[0].(object)["name"] != bob || top[0].(object)["count"] != 2.0 {
		t.Errorf("the senders with most decisions are %v", top)
	}
	harness.WaitFor(t, "the totals", func() bool {
		n := 0.0
		for _, x := range ask(t, s.api, 200, "GET", "/api/v1/totals?since=1h", "", nil)["totals"].([]any) {
			if x := x.(object); x["action"] == "reject" {
				n += x["count"].(float64)
			}
		}
		return n == 2
	})
	if health := ask(t, s.api, 200, "GET", "/api/v1/health", "", nil); health["healthy"] != true {
		t.Errorf("health is %v", health)
	}
}

// TestEntries adds, lists, finds and removes entries of every kind.
func TestEntries(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	all := []string{"user@a.example", "@b.example", "c.example", "*.d.example", "user@", "<>", "!x@c.example", "a/b@e.example", "a%2fb@f.example", "bücher.example", `"a b"@g.example`, "x+y@h.example", "@[192.0.2.1]"}
	normal := map[string]bool{}
	for _, e := range all {
		added := ask(t, s.api, 201, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": e, "reason": "test of " + strings.Map(printableOnly, e)})
		normal[added["entry"].(string)] = true
	}
	found, place := 0, ""
	for {
		page := ask(t, s.api, 200, "GET", "/api/v1/lists/blocked/entries?limit=5&at="+place, entriesPattern, nil)
		for _, e := range page["entries"].([]any) {
			if !normal[e.(object)["entry"].(string)] {
				t.Errorf("an entry that was not added: %v", e)
			}
			found++
		}
		next, ok := page["next"].(string)
		if !ok {
			break
		}
		place = next
	}
	if found != len(all) {
		t.Errorf("%d entries of %d in the pages", found, len(all))
	}
	if l := ask(t, s.api, 200, "GET", "/api/v1/lists/blocked", "/api/v1/lists/{name}", nil); l["entries"] != float64(len(all)) || l["exceptions"] != 1.0 {
		t.Errorf("the list is %v", l)
	}
	for q, want := range map[string]int{"anyone@c.example": 1, "x@c.example": 2, "user@else.example": 1, "nothing.example": 0, "c.example": 2} {
		if found := ask(t, s.api, 200, "GET", "/api/v1/lists/blocked/entries?q="+q, entriesPattern, nil)["entries"].([]any); len(found) != want {
			t.Errorf("%d entries match %s, want %d: %v", len(found), q, want, found)
		}
	}
	for _, e := range all {
		ask(t, s.api, 200, "DELETE", harness.EntryPath("blocked", e)+"?reason=done", entryPattern, nil)
		ask(t, s.api, 404, "DELETE", harness.EntryPath("blocked", e), entryPattern, nil)
	}
	lists := ask(t, s.api, 200, "GET", "/api/v1/lists", "", nil)["lists"].([]any)
	if len(lists) != 4 || lists[0].(object)["entries"] != 0.0 {
		t.Errorf("the lists are %v", lists)
	}
}

func printableOnly(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// TestRefusals is a table of requests that are refused, and with which status.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{Tables: "[guard]\nprotect = [\"precious.example\"]\n"})
	viewer, desk := s.as("viewer", "viewer"), s.as("desk", "helpdesk")
	bound := s.as("bound", "editor", "example.net")
	ask(t, s.api, 201, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "longer@a.example", "until": "30d"})
	for _, tt := range []struct {
		what         string
		api          harness.API
		want         int
		method, path string
		pattern      string
		body         any
	}{
		{"a wrong token", harness.API{URL: s.url, Token: "sgt_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}, 401, "GET", "/api/v1/lists", "", nil},
		{"beyond the role", viewer, 403, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "a.example", "until": "1h"}},
		{"the helpdesk, for two days", desk, 403, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "a.example", "until": "2d"}},
		{"the helpdesk, for good", desk, 403, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "a.example"}},
		{"the helpdesk blocks", desk, 403, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "until": "1h"}},
		{"the helpdesk shortens", desk, 409, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "longer@a.example", "until": "1h"}},
		{"the helpdesk removes", desk, 403, "DELETE", harness.EntryPath("allowed", "longer@a.example"), entryPattern, nil},
		{"bound, for all", bound, 403, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": "a.example"}},
		{"bound, for others", bound, 403, "POST", "/api/v1/lists/allowed-for/entries", entriesPattern, object{"entry": "a.example", "for": "x@other.example"}},
		{"bound, for its own", bound, 201, "POST", "/api/v1/lists/allowed-for/entries", entriesPattern, object{"entry": "a.example", "for": ann}},
		{"bound, lists", bound, 403, "GET", "/api/v1/lists", "", nil},
		{"bound, totals", bound, 403, "GET", "/api/v1/totals", "", nil},
		{"bound, a ranking", bound, 403, "GET", "/api/v1/decisions/top?by=senders", "", nil},
		{"bound, without a recipient", bound, 400, "GET", "/api/v1/check?sender=a@a.example", "", nil},
		{"bound, a recipient of others", bound, 403, "GET", "/api/v1/check?sender=a@a.example&recipient=x@other.example", "", nil},
		{"an unknown list", s.api, 404, "GET", "/api/v1/lists/none", "/api/v1/lists/{name}", nil},
		{"an unknown list", s.api, 404, "POST", "/api/v1/lists/none/entries", entriesPattern, object{"entry": "a.example"}},
		{"an unknown change", s.api, 404, "POST", "/api/v1/changes/aaaaaaaaaaaaaaaa/undo", undoPattern, object{}},
		{"a file of the administrator", s.api, 409, "POST", "/api/v1/lists/blocked-file/entries", entriesPattern, object{"entry": "a.example"}},
		{"an invalid entry", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "not an entry"}},
		{"a public suffix", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "co.uk"}},
		{"no entry", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{}},
		{"a protected domain", s.api, 422, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "precious.example"}},
		{"a reason of two lines", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "reason": "one\ntwo.example"}},
		{"a reason with a note", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "reason": "one ## two"}},
		{"a reason with an end", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "reason": "until=2020-01-01"}},
		{"a reason that is too long", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "reason": strings.Repeat("x", 100_000)}},
		{"a body that is too large", s.api, 413, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "reason": strings.Repeat("x", 1<<20)}},
		{"a time that is over", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "until": "2020-01-01"}},
		{"an unknown member", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, object{"entry": "a.example", "expires": "1h"}},
		{"no object", s.api, 400, "POST", "/api/v1/lists/blocked/entries", entriesPattern, []string{"a.example"}},
		{"an unknown field", s.api, 400, "GET", "/api/v1/decisions?from=" + bob, "", nil},
		{"a field twice", s.api, 400, "GET", "/api/v1/decisions?id=AAAAAAAAAAAA&id=BBBBBBBBBBBB", "", nil},
		{"no id", s.api, 400, "GET", "/api/v1/decisions?id=x", "", nil},
		{"an unknown action", s.api, 400, "GET", "/api/v1/decisions?action=refuse", "", nil},
		{"no address of a client", s.api, 400, "GET", "/api/v1/decisions?client=x", "", nil},
		{"no time", s.api, 400, "GET", "/api/v1/decisions?since=yesterday", "", nil},
		{"no number", s.api, 400, "GET", "/api/v1/decisions?limit=0", "", nil},
		{"a damaged cursor", s.api, 400, "GET", "/api/v1/decisions?before=x", "", nil},
		{"no sender", s.api, 400, "GET", "/api/v1/check", "", nil},
		{"no ranking", s.api, 400, "GET", "/api/v1/decisions/top?by=subjects", "", nil},
		{"a damaged place", s.api, 400, "GET", "/api/v1/lists/blocked/entries?at=x", entriesPattern, nil},
	} {
		t.Run(tt.what, func(t *testing.T) { ask(t, tt.api, tt.want, tt.method, tt.path, tt.pattern, tt.body) })
	}
}

// TestBound has an account that is bound to a domain: it sees its own recipients' part of what
// the history has, and only changes for these.
func TestBound(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	mine := s.refuse(t, bob, ann, "blocked-file", "unsolicited mail")
	others := s.refuse(t, bob, "carl@other.example", "blocked-file", "unsolicited mail")
	bound := s.as("bound", "editor", "example.net")
	rows := ask(t, bound, 200, "GET", "/api/v1/decisions", "", nil)["decisions"].([]any)
	if len(rows) != 1 || rows[0].(object)["id"] != mine {
		t.Errorf("the rows are %v", rows)
	}
	for _, query := range []string{"id=" + others, "recipient=carl@other.example"} {
		if rows := ask(t, bound, 200, "GET", "/api/v1/decisions?"+query, "", nil)["decisions"].([]any); len(rows) != 0 {
			t.Errorf("%s: %v", query, rows)
		}
	}
	ask(t, s.api, 201, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": bob, "reason": "for all"})
	other := ask(t, s.api, 201, "POST", "/api/v1/lists/allowed-for/entries", entriesPattern, object{"entry": bob, "for": "carl@other.example"})
	own := ask(t, s.api, 201, "POST", "/api/v1/lists/allowed-for/entries", entriesPattern, object{"entry": bob, "for": "@example.net"})
	changes := ask(t, bound, 200, "GET", "/api/v1/changes", "", nil)["changes"].([]any)
	if len(changes) != 1 || changes[0].(object)["id"] != own["change"] {
		t.Errorf("the changes are %v", changes)
	}
	ask(t, bound, 404, "POST", "/api/v1/changes/"+other["change"].(string)+"/undo", undoPattern, object{})
	ask(t, bound, 200, "POST", "/api/v1/changes/"+own["change"].(string)+"/undo", undoPattern, object{})
	ask(t, bound, 200, "GET", "/api/v1/check?sender="+bob+"&recipient="+ann, "", nil)
}

// TestHashedAddresses searches a history whose addresses are hashed: by whole addresses only.
func TestHashedAddresses(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{Keys: map[string]string{"log": `addresses = "hash"`}})
	reply, err := harness.MustDial(t, s.Addr).Verdict(bob, ann)
	if err != nil {
		t.Fatal(err)
	}
	id := harness.WantRefusal(t, reply, bob, "blocked-file", "unsolicited mail")
	s.api.WaitRow(t, id)
	var sender string
	for _, query := range []string{"sender=Bob@SPAM.example", "recipient=" + ann, "id=" + id} {
		rows := ask(t, s.api, 200, "GET", "/api/v1/decisions?"+query, "", nil)["decisions"].([]any)
		if len(rows) != 1 {
			t.Fatalf("%s finds %d rows", query, len(rows))
		}
		row, _ := json.Marshal(rows[0])
		for _, address := range []string{"bob", "ann@", "ann%40"} {
			if strings.Contains(string(row), address) {
				t.Errorf("%s: the row has %q: %s", query, address, row)
			}
		}
		sender = rows[0].(object)["sender"].(string)
	}
	if rows := ask(t, s.api, 200, "GET", "/api/v1/decisions?sender="+sender, "", nil)["decisions"].([]any); len(rows) != 1 {
		t.Errorf("the hash itself finds %d rows", len(rows))
	}
	ask(t, s.api, 400, "GET", "/api/v1/decisions?domain=spam.example", "", nil)
	ask(t, s.api, 400, "GET", "/api/v1/decisions?sender=bob", "", nil)
}

// TestHeld accepts and refuses an update that looks wrong.
func TestHeld(t *testing.T) {
	t.Parallel()
	const heldPattern = "/api/v1/lists/{name}/held"
	s := startSite(t, harness.Setup{
		Lists: harness.ManagedLists + "[[list]]\nname = \"imported\"\npath = \"imported.txt\"\n",
		Files: map[string]string{"imported.txt": harness.NumberedList(1500)},
	})
	ask(t, s.api, 404, "GET", "/api/v1/lists/imported/held", heldPattern, nil)
	hold := func(n int) {
		t.Helper()
		harness.WriteFile(t, filepath.Join(s.Dir, "imported.txt"), harness.NumberedList(n))
		harness.WaitFor(t, "the update to be held", func() bool { return s.Status(t, "imported").Lists[0].Held })
	}
	hold(3)
	if held := ask(t, s.api, 200, "GET", "/api/v1/lists/imported/held", heldPattern, nil); held["difference"].(object)["went"] != 1497.0 || held["difference"].(object)["came"] != 0.0 {
		t.Errorf("the held update is %v", held)
	}
	editor := s.as("editor", "editor")
	ask(t, editor, 403, "POST", "/api/v1/lists/imported/held/accept", heldPattern+"/accept", object{})
	ask(t, s.api, 409, "POST", "/api/v1/lists/imported/held/accept", heldPattern+"/accept", object{"sum": "another"})
	ask(t, s.api, 200, "POST", "/api/v1/lists/imported/held/accept", heldPattern+"/accept", object{"why": "it is right"})
	if n := s.Status(t, "imported").Lists[0].Entries; n != 3 {
		t.Errorf("%d entries after accept", n)
	}
	ask(t, s.api, 409, "POST", "/api/v1/lists/imported/held/accept", heldPattern+"/accept", object{})
	harness.WriteFile(t, filepath.Join(s.Dir, "imported.txt"), harness.NumberedList(1500))
	harness.WaitFor(t, "the long list", func() bool { return s.Status(t, "imported").Lists[0].Entries == 1500 })
	hold(2)
	ask(t, s.api, 200, "POST", "/api/v1/lists/imported/held/refuse", heldPattern+"/refuse", object{"why": "it is wrong"})
	if l := ask(t, s.api, 200, "GET", "/api/v1/lists/imported", "/api/v1/lists/{name}", nil); l["pinned"] == nil || l["entries"] != 1500.0 {
		t.Errorf("after refuse: %v", l)
	}
}

// TestDecisionsByPages reads the history page by page while mail comes in: each row once.
func TestDecisionsByPages(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	c := harness.MustDial(t, s.Addr)
	const mails = 45
	for i := range mails {
		if reply, err := c.Verdict(fmt.Sprintf("u%d@spam.example", i), ann); err != nil || reply[0] != '5' {
			t.Fatal(reply, err)
		}
	}
	s.refuse(t, "last@spam.example", ann, "blocked-file", "unsolicited mail")
	seen, before := map[string]bool{}, ""
	for {
		page := ask(t, s.api, 200, "GET", "/api/v1/decisions?limit=10&domain=spam.example&before="+before, "", nil)
		for _, d := range page["decisions"].([]any) {
			sender := d.(object)["sender"].(string)
			if seen[sender] {
				t.Errorf("%s comes twice", sender)
			}
			seen[sender] = true
		}
		if _, err := c.Verdict(fmt.Sprintf("late%d@elsewhere.spam.example", len(seen)), ann); err != nil {
			t.Fatal(err)
		}
		next, ok := page["next"].(string)
		if !ok {
			break
		}
		before = next
	}
	if len(seen) != mails+1 {
		t.Errorf("%d rows, want %d", len(seen), mails+1)
	}
}
