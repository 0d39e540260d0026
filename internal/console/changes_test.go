package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"spamgate/internal/managed"
)

// change adds an entry for an account, and returns the change's ID.
func (p *parts) change(who, role, list string, e managed.NewEntry) string {
	p.t.Helper()
	r, err := p.Editor.Add(p.t.Context(), managed.Account(who, role, managed.ThroughConsole), list, []managed.NewEntry{e}, managed.Options{Why: "ticket 4711"})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Entries[0].Change
}

// plainEntry returns an entry for everybody.
func plainEntry(entry, reason string) managed.NewEntry {
	return managed.NewEntry{Name: managed.Name{Entry: entry}, Reason: reason}
}

func TestChangesPage(t *testing.T) {
	p := newParts(t, "")
	viewer := login(t, p.Console, "viewer")
	wantText(t, visit(t, p.Console, viewer, "/changes", 200), "Nothing has been changed yet.")

	p.change("ann", "editor", "blocked", plainEntry("spam.example", "unsolicited mail"))
	p.change("bob", "admin", "allowed", plainEntry("good.example", `<script>alert(1)</script> "x"`))
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"", []string{"ann", "editor", "spam.example", "ticket 4711", "bob", "good.example", "<script>alert(1)</script>", "!Undo"}},
		{"?list=blocked", []string{"spam.example", "!good.example", "[blocked]"}},
		{"?by=bob", []string{"!spam.example #", "good.example"}},
		{"?entry=SPAM.example", []string{"spam.example", "!good.example"}},
		{"?since=1h", []string{"spam.example", "good.example"}},
		{"?by=nobody", []string{"No change fits."}},
		{"?by=" + url.QueryEscape("<i>\u202e\x00"), []string{"No change fits."}},
	} {
		wantText(t, visit(t, p.Console, viewer, "/changes"+tt.query, 200), tt.want...)
	}
	wantText(t, visit(t, p.Console, viewer, "/changes?entry=@@", 400), "Invalid entry")
	wantText(t, visit(t, p.Console, viewer, "/changes?since=soon", 400), `"soon" is not a time`)
	wantText(t, visit(t, p.Console, viewer, "/changes?before=nothing", 400), "Not a place among the changes")
	token := addToken(t, p.Console)
	for before, want := range map[string]int{"nothing": 400, "a.b": 400, "": 200, "abcdefghijkl2345": 200, "1kz3x.0": 200} {
		if response, body := ask(p.Console, bearing(get("/api/v1/changes?before="+before), token)); response.StatusCode != want {
			t.Errorf("before=%s: %s %s", before, response.Status, body)
		}
	}
}

// TestChangesPaging follows the pages from the newest change to the oldest.
func TestChangesPaging(t *testing.T) {
	p := newParts(t, "")
	const n = 2*changesRows + 1
	var all []managed.NewEntry
	for i := range n {
		all = append(all, plainEntry(fmt.Sprintf("spam%03d.example", i), "many"))
	}
	if _, err := p.Editor.Add(t.Context(), managed.Account("ann", "editor", managed.ThroughConsole), "blocked", all, managed.Options{}); err != nil {
		t.Fatal(err)
	}
	cookie, seen := login(t, p.Console, "editor"), 0
	for path := "/changes?by=ann"; path != ""; {
		body := visit(t, p.Console, cookie, path, 200)
		for ; seen < n && strings.Contains(body, fmt.Sprintf("spam%03d.example", n-1-seen)); seen++ {
		}
		path = linkTo(body, "/changes?before=")
		if path != "" && !strings.Contains(path, "by=ann") {
			t.Fatalf("the link %s lacks the filter", path)
		}
	}
	if seen != n {
		t.Errorf("%d of %d changes in their order", seen, n)
	}
}

// TestUndo undoes changes as different accounts.
func TestUndo(t *testing.T) {
	p := newParts(t, "")
	editor, helpdesk, viewer, bound := login(t, p.Console, "editor"), login(t, p.Console, "helpdesk"), login(t, p.Console, "viewer"), login(t, p.Console, "bound")
	others := p.change("ann", "editor", "blocked", plainEntry("spam.example", "unsolicited mail"))
	own := p.change("helpdesk", "helpdesk", "allowed", managed.NewEntry{Name: managed.Name{Entry: "x@good.example"}, Until: time.Now().Add(time.Hour)})
	theirs := p.change("ann", "editor", "allowed-for", managed.NewEntry{Name: managed.Name{Entry: "x@good.example", For: "ann@b.example"}})
	strange := p.change("ann", "editor", "allowed-for", managed.NewEntry{Name: managed.Name{Entry: "x@good.example", For: "ann@c.example"}})

	wantText(t, visit(t, p.Console, bound, "/changes", 200), "ann@b.example", "!ann@c.example", "!spam.example", "for your recipients")
	for _, tt := range []struct {
		who    *http.Cookie
		change string
		status int
		want   string
	}{
		{viewer, own, 403, "does not permit"},
		{helpdesk, others, 403, "does not permit"},
		{helpdesk, "nonsense", 404, "change"},
		{bound, others, 404, "change"},
		{bound, strange, 404, "change"},
		{bound, theirs, 303, ""},
		{helpdesk, own, 303, ""},
		{helpdesk, own, 409, "undone already"},
		{editor, others, 303, ""},
	} {
		response, body := ask(p.Console, with(post("/undo/"+tt.change, "back", "/mail?q=x.example", "why", "a mistake"), tt.who))
		if response.StatusCode != tt.status || !strings.Contains(plainText(body), tt.want) {
			t.Errorf("undo %s: %s\n%s", tt.change, response.Status, plainText(body))
		}
		if tt.status != 303 {
			continue
		}
		to := response.Header.Get("Location")
		if !strings.HasPrefix(to, "/mail?done=") || !strings.HasSuffix(to, "q=x.example") {
			t.Errorf("undo %s leads to %q", tt.change, to)
		}
		wantText(t, visit(t, p.Console, tt.who, to, 200), "undone: added", "The entry is as it was before.")
		wantText(t, visit(t, p.Console, viewer, to, 200), "!The entry is as it was before.")
	}
	wantText(t, visit(t, p.Console, editor, "/changes", 200), "undone by helpdesk", "undone by editor", "undone by bound", "a mistake")
	for _, l := range p.gate.set().Stats().Lists {
		if want := map[string]int{"file": 1, "allowed-for": 1}[l.Name]; l.Entries != want {
			t.Errorf("list %s has %d entries after all was undone, want %d", l.Name, l.Entries, want)
		}
	}
}

// TestAskUndo checks the question before an undo.
func TestAskUndo(t *testing.T) {
	p := newParts(t, "")
	editor := login(t, p.Console, "editor")
	id := p.change("ann", "editor", "blocked", plainEntry("spam.example", "unsolicited mail"))
	body := visit(t, p.Console, editor, "/undo/"+id+"?back=/mail/2ZFPDJSVUUAR", 200)
	wantText(t, body, "The list blocked loses:", "spam.example # unsolicited mail", "Undo: remove spam.example", "[/mail/2ZFPDJSVUUAR]")
	wantText(t, visit(t, p.Console, editor, "/undo/"+id+"?back=//evil.example/", 200), "!evil.example")

	p.change("bob", "editor", "blocked", plainEntry("spam.example", "another reason"))
	body = visit(t, p.Console, editor, "/undo/"+id, 200)
	wantText(t, body, "has changed since", "Back", "!Undo: ")
	response, body := ask(p.Console, with(post("/undo/"+id), editor))
	if response.StatusCode != http.StatusConflict {
		t.Errorf("undo of what has changed: %s\n%s", response.Status, body)
	}
	visit(t, p.Console, editor, "/undo/AAAAAAAAAAAA", 404)
	again := p.change("editor", "editor", "blocked", plainEntry("more.example", ""))
	if response, _ := ask(p.Console, with(post("/undo/"+again), editor)); !strings.HasPrefix(response.Header.Get("Location"), "/changes?done=") {
		t.Errorf("an undo from nowhere leads to %q", response.Header.Get("Location"))
	}
	visit(t, p.Console, login(t, p.Console, "helpdesk"), "/undo/"+id, 200)
}

// TestUndoAll undoes what a command changed, by page and by API; an account that is bound to domains
// may not.
func TestUndoAll(t *testing.T) {
	p := newParts(t, "")
	editor, bound := login(t, p.Console, "editor"), login(t, p.Console, "bound")
	entries := []managed.NewEntry{
		{Name: managed.Name{Entry: "x@good.example", For: "ann@b.example"}}, {Name: managed.Name{Entry: "y@good.example", For: "ann@b.example"}},
	}
	for _, byAPI := range []bool{false, true} {
		r, err := p.Editor.Add(t.Context(), managed.Account("ann", "editor", managed.ThroughConsole), "allowed-for", entries, managed.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if page := visit(t, p.Console, editor, "/changes", 200); strings.Count(page, `href="/undo/`+r.Change+`"`) != 2 {
			t.Errorf("the page does not offer to undo all:\n%s", page)
		}
		wantText(t, visit(t, p.Console, bound, "/changes", 200), "!Undo all…")
		visit(t, p.Console, bound, "/undo/"+r.Change, 404)
		wantText(t, visit(t, p.Console, editor, "/undo/"+r.Change, 200), "2 entries are as before", "Undo: all that the command changed")
		if byAPI {
			request := httptest.NewRequest(http.MethodPost, "http://gate.example/api/v1/changes/"+r.Change+"/undo", strings.NewReader(`{"why": "a mistake"}`))
			request.Header.Set("Content-Type", "application/json")
			response, body := ask(p.Console, bearing(request, addToken(t, p.Console)))
			var got apiEdited
			if err := json.Unmarshal([]byte(body), &got); err != nil || response.StatusCode != 200 || got.Undone != 2 || got.Stay != 0 || got.Change == "" {
				t.Fatalf("%s\n%s", response.Status, body)
			}
		} else {
			response, body := ask(p.Console, with(post("/undo/"+r.Change, "why", "a mistake"), editor))
			if response.StatusCode != 303 {
				t.Fatalf("%s\n%s", response.Status, body)
			}
			wantText(t, visit(t, p.Console, editor, response.Header.Get("Location"), 200), "undone: added")
		}
		response, body := ask(p.Console, with(post("/undo/"+r.Change), editor))
		if response.StatusCode != http.StatusConflict || !strings.Contains(body, "undone already") {
			t.Errorf("again: %s\n%s", response.Status, body)
		}
	}
}
