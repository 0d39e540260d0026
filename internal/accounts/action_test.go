package accounts

import (
	"os"
	"strings"
	"testing"
	"time"
)

// may is what each role may do: without a binding to domains, and for its own recipients if
// it is bound. It is the table of docs/console.md, in its order.
var may = map[Action]struct {
	least string
	bound bool
}{
	Enter:       {"viewer", true},
	SeeMail:     {"viewer", true},
	Try:         {"viewer", true},
	SeeChanges:  {"viewer", true},
	SeeTotals:   {"viewer", false},
	SeeLists:    {"viewer", false},
	SeeHealth:   {"viewer", false},
	SeeSettings: {"viewer", false},
	LetIn:       {"helpdesk", true},
	UndoOwn:     {"helpdesk", true},
	Block:       {"editor", true},
	EditEntries: {"editor", true},
	AcceptHeld:  {"admin", false},
	Rollback:    {"admin", false},
	Pin:         {"admin", false},
	EndSessions: {"admin", false},
}

// TestMay tries each action with each role, with and without a binding.
func TestMay(t *testing.T) {
	if len(may) != len(Actions()) {
		t.Fatalf("%d actions in the table, %d in the package", len(may), len(Actions()))
	}
	for x, want := range may {
		least, err := ParseRole(want.least)
		must(t, err)
		for role := Viewer; role <= Admin; role++ {
			free := Account{Name: "ann", Role: role}
			bound := Account{Name: "ann", Role: role, Domains: []string{"example.net"}}
			enough := role >= least
			for _, c := range []struct {
				what      string
				got, want bool
			}{
				{"May", free.May(x), enough},
				{"MaySome", free.MaySome(x), enough},
				{"MayFor anybody", free.MayFor(x, "bob@example.org"), enough},
				{"MayFor nobody", free.MayFor(x, ""), enough},
				{"bound May", bound.May(x), false},
				{"bound MaySome", bound.MaySome(x), enough && want.bound},
				{"bound MayFor its own", bound.MayFor(x, "bob@example.net"), enough && want.bound},
				{"bound MayFor its own domain", bound.MayFor(x, "@example.net"), enough && want.bound},
				{"bound MayFor others", bound.MayFor(x, "bob@example.org"), false},
				{"bound MayFor everybody", bound.MayFor(x, ""), false},
			} {
				if c.got != c.want {
					t.Errorf("%v: %v: %s is %v", role, x, c.what, c.got)
				}
			}
		}
		if (Account{Role: Admin + 1}).May(x) || (Account{Role: -1}).May(x) {
			t.Errorf("%v: an unknown role may", x)
		}
	}
	for _, x := range []Action{0, -1, actions} {
		if a := (Account{Role: Admin}); a.May(x) || a.MaySome(x) || a.MayFor(x, "bob@example.net") {
			t.Errorf("%v is allowed", x)
		}
	}
}

// A recipient that a bound account may see is an address at its domain, not what looks
// like one, and not a pattern for more.
func TestMaySee(t *testing.T) {
	a := Account{Domains: []string{"example.net", "xn--bcher-kva.example"}}
	for recipient, want := range map[string]bool{
		"bob@example.net": true, "Bob+tag@EXAMPLE.net": true, "<bob@example.net>": true, "@example.net": true,
		"bob@bücher.example": true, "*@example.net": true, "bob%example.org@example.net": true, `"a@b"@example.net`: true,
		"": false, "<>": false, "@": false, "bob": false, "bob@": false, "example.net": false, "*.example.net": false, ".example.net": false,
		"bob@sub.example.net": false, "bob@example.net.evil.example": false, "bob@example.org": false, "bob@example.net, x@example.org": false,
		"@example.org @example.net": false, "x@example.org @example.net": false, "x@example.org\n@example.net": false,
		"x@example.net\t@example.org": false, "5f2c9e0d@hash": false, "bob@example.net\x00": false,
	} {
		if got := a.MaySee(recipient); got != want {
			t.Errorf("%q: %v", recipient, got)
		}
	}
	if !(Account{}).MaySee("") {
		t.Error("an account that is not bound sees all")
	}
}

func TestCheckUntil(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		role  Role
		until time.Time
		ok    bool
	}{
		{Helpdesk, now.Add(time.Hour), true},
		{Helpdesk, now.Add(24 * time.Hour), true},
		{Helpdesk, now.Add(25 * time.Hour), false},
		{Helpdesk, time.Time{}, false},
		{Viewer, time.Time{}, false},
		{Editor, now.Add(10000 * time.Hour), true},
		{Editor, time.Time{}, true},
		{Admin, time.Time{}, true},
	} {
		if err := (Account{Role: c.role}).CheckUntil(c.until, now); (err == nil) != c.ok {
			t.Errorf("%v until %v: %v", c.role, c.until, err)
		}
	}
}

func TestRole(t *testing.T) {
	for r := Viewer; r <= Admin; r++ {
		got, err := ParseRole(r.String())
		if err != nil || got != r {
			t.Errorf("%v: %v, %v", r, got, err)
		}
	}
	for _, name := range []string{"", "Admin", "root", "Role(7)"} {
		if r, err := ParseRole(name); err == nil {
			t.Errorf("%q is %v", name, r)
		}
	}
	if _, err := Role(7).MarshalText(); err == nil {
		t.Error("an unknown role was written")
	}
}

// The table of docs/console.md says what each role may do.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/console.md")
	must(t, err)
	for x, want := range may {
		row := "| " + x.String() + " |"
		for r := Viewer; r <= Admin; r++ {
			least, _ := ParseRole(want.least)
			row += map[bool]string{true: " yes |", false: " – |"}[r >= least]
		}
		row += map[bool]string{true: " yes |", false: " – |"}[want.bound]
		if !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("docs/console.md has no row %s", row)
		}
	}
}
