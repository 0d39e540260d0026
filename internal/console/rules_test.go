package console

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/managed"
)

var (
	viewer   = accounts.Account{Name: "viewer", Role: accounts.Viewer}
	helpdesk = accounts.Account{Name: "helpdesk", Role: accounts.Helpdesk}
	editor   = accounts.Account{Name: "editor", Role: accounts.Editor}

	boundDesk   = accounts.Account{Name: "desk", Role: accounts.Helpdesk, Domains: []string{"b.example"}}
	boundEditor = accounts.Account{Name: "bound", Role: accounts.Editor, Domains: []string{"b.example"}}
)

// status returns the status of HTTP for an error; 200 for none.
func status(err error) int {
	var f failure
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &f):
		return f.status
	}
	return http.StatusInternalServerError
}

// TestMayEdit is the table of who may add and remove which entry.
func TestMayEdit(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	c := &Console{Options: Options{Now: func() time.Time { return now }}}
	hour, week := now.Add(time.Hour), now.Add(7*24*time.Hour)
	var forGood time.Time
	list := func(kind string, perRecipient bool) *config.List {
		return &config.List{Name: "l", Type: kind, Format: "plain", Match: "subtree", Managed: true, PerRecipient: perRecipient}
	}
	file := list("allow", false)
	file.Managed = false
	for _, tt := range []struct {
		what   string
		list   *config.List
		entry  managed.Name
		until  time.Time
		add    map[string]int // by account; others: 403
		remove map[string]int
	}{
		{"let in for an hour", list("allow", false), managed.Name{Entry: "x@a.example"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200}, map[string]int{"editor": 200}},
		{"let in for a week", list("allow", false), managed.Name{Entry: "x@a.example"}, week,
			map[string]int{"editor": 200}, map[string]int{"editor": 200}},
		{"let in for good", list("allow", false), managed.Name{Entry: "a.example"}, forGood,
			map[string]int{"editor": 200}, map[string]int{"editor": 200}},
		{"an exception of a block list lets in", list("block", false), managed.Name{Entry: "!x@a.example"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200}, map[string]int{"editor": 200}},
		{"block", list("block", false), managed.Name{Entry: "x@a.example"}, hour,
			map[string]int{"editor": 200}, map[string]int{"editor": 200}},
		{"for a recipient of its own", list("allow", true), managed.Name{Entry: "x@a.example", For: "ann@b.example"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200, "desk": 200, "bound": 200}, map[string]int{"editor": 200, "bound": 200}},
		{"for a domain of its own", list("allow", true), managed.Name{Entry: "x@a.example", For: "@b.example"}, forGood,
			map[string]int{"editor": 200, "bound": 200}, map[string]int{"editor": 200, "bound": 200}},
		{"in another spelling", list("allow", true), managed.Name{Entry: "x@a.example", For: "Ann@B.Example"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200, "desk": 200, "bound": 200}, map[string]int{"editor": 200, "bound": 200}},
		{"for its domain with those below it", list("allow", true), managed.Name{Entry: "x@a.example", For: "b.example"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200}, map[string]int{"editor": 200}},
		{"for a domain below its own", list("allow", true), managed.Name{Entry: "x@a.example", For: "ann@sub.b.example"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200}, map[string]int{"editor": 200}},
		{"for a local part everywhere", list("allow", true), managed.Name{Entry: "x@a.example", For: "ann@"}, hour,
			map[string]int{"helpdesk": 200, "editor": 200}, map[string]int{"editor": 200}},
		{"for others", list("block", true), managed.Name{Entry: "x@a.example", For: "ann@c.example"}, hour,
			map[string]int{"editor": 200}, map[string]int{"editor": 200}},
		{"two sides in one", list("allow", true), managed.Name{Entry: "ann@c.example x@a.example", For: "ann@b.example"}, hour, all(400), all(400)},
		{"a recipient in a list for all", list("allow", false), managed.Name{Entry: "x@a.example", For: "ann@b.example"}, hour, all(400), all(400)},
		{"no recipient in a list by recipient", list("allow", true), managed.Name{Entry: "x@a.example"}, hour, all(400), all(400)},
		{"no entry", list("allow", false), managed.Name{Entry: "no entry"}, hour, all(400), all(400)},
		{"a list that the gate does not keep", file, managed.Name{Entry: "x@a.example"}, hour, all(409), all(409)},
	} {
		for _, who := range []accounts.Account{viewer, helpdesk, editor, boundDesk, boundEditor} {
			for _, edit := range []struct {
				name string
				got  int
				want map[string]int
			}{
				{"add", status(c.mayAdd(who, tt.list, tt.entry, tt.until)), tt.add},
				{"remove", status(c.mayRemove(who, tt.list, tt.entry)), tt.remove},
			} {
				want, ok := edit.want[who.Name]
				if !ok {
					want = http.StatusForbidden
				}
				if edit.got != want {
					t.Errorf("%s: %s by %s: %d, want %d", tt.what, edit.name, who.Name, edit.got, want)
				}
			}
		}
	}
}

// all returns one status for all accounts.
func all(status int) map[string]int {
	return map[string]int{"viewer": status, "helpdesk": status, "editor": status, "desk": status, "bound": status}
}

func TestMayUndo(t *testing.T) {
	change := func(by, through, recipient string) managed.Change {
		role := map[string]string{"helpdesk": "helpdesk", "desk": "helpdesk", "viewer": "viewer", "editor": "editor"}[by]
		return managed.Change{By: by, Role: role, Through: through, For: recipient}
	}
	asEditor := func(c managed.Change) managed.Change {
		c.Role = "editor"
		return c
	}
	for _, tt := range []struct {
		what   string
		who    accounts.Account
		change managed.Change
		want   int
	}{
		{"own", helpdesk, change("helpdesk", managed.ThroughConsole, ""), 200},
		{"own, by the API", helpdesk, change("helpdesk", managed.ThroughAPI, ""), 200},
		{"of a user of the machine with that name", helpdesk, change("helpdesk", managed.ThroughCommand, ""), 403},
		{"of another", helpdesk, change("editor", managed.ThroughConsole, ""), 403},
		{"of another", editor, change("helpdesk", managed.ThroughConsole, ""), 200},
		{"of a command", editor, change("root", managed.ThroughCommand, ""), 200},
		{"own", viewer, change("viewer", managed.ThroughConsole, ""), 403},
		{"own, for its recipient", boundDesk, change("desk", managed.ThroughConsole, "ann@b.example"), 200},
		{"own, from before it was bound", boundDesk, change("desk", managed.ThroughConsole, ""), 403},
		{"own, from before it was demoted", helpdesk, asEditor(change("helpdesk", managed.ThroughConsole, "")), 403},
		{"own, for its recipient, from before it was demoted", boundDesk, asEditor(change("desk", managed.ThroughAPI, "ann@b.example")), 403},
		{"own, from before it was promoted", editor, change("editor", managed.ThroughConsole, ""), 200},
		{"own, of an unknown role", helpdesk, managed.Change{By: "helpdesk", Role: "root", Through: managed.ThroughConsole}, 403},
		{"of another, for its recipient", boundEditor, change("editor", managed.ThroughConsole, "@b.example"), 200},
		{"of another, for others", boundEditor, change("editor", managed.ThroughConsole, "@c.example"), 403},
	} {
		if got := status(mayUndo(tt.who, tt.change)); got != tt.want {
			t.Errorf("%s, by %s: %d, want %d", tt.what, tt.who.Name, got, tt.want)
		}
		if seen := seenBy(tt.who); seen != nil && seen(&tt.change) != (tt.change.For == "ann@b.example" || tt.change.For == "@b.example") {
			t.Errorf("%s: %s sees it: %t", tt.what, tt.who.Name, seen(&tt.change))
		}
	}
}

func TestMayTry(t *testing.T) {
	for _, tt := range []struct {
		who        accounts.Account
		recipients []string
		want       int
	}{
		{viewer, nil, 200},
		{viewer, []string{"ann@c.example"}, 200},
		{boundDesk, nil, 400},
		{boundDesk, []string{"ann@b.example"}, 200},
		{boundDesk, []string{"ann@b.example", "carl@c.example"}, 403},
	} {
		if got := status(mayTry(tt.who, tt.recipients)); got != tt.want {
			t.Errorf("%s, %q: %d, want %d", tt.who.Name, tt.recipients, got, tt.want)
		}
	}
}

func TestParseEnd(t *testing.T) {
	now := time.Date(2026, 11, 23, 9, 30, 0, 500, time.UTC)
	if got, err := parseEnd("", now); err != nil || !got.IsZero() {
		t.Errorf("no end: %v, %v", got, err)
	}
	for _, text := range []string{"0h", "yesterday", "2026-11-21"} {
		if got, err := parseEnd(text, now); status(err) != http.StatusBadRequest {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
