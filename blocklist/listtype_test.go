package blocklist

import (
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
)

func TestListTypeNames(t *testing.T) {
	for _, want := range []ListType{Block, Allow} {
		var got ListType
		if text, err := want.MarshalText(); err != nil || got.UnmarshalText(text) != nil || got != want {
			t.Errorf("%s read as %s, %v", text, got, err)
		}
	}
	if text := Block.String() + "," + Allow.String() + "," + ListType(9).String(); text != "block,allow,ListType(9)" {
		t.Error(text)
	}
	var l ListType
	err := l.UnmarshalText([]byte("white"))
	if err == nil || err.Error() != `unknown list type "white": use block, allow` || l != Block {
		t.Error(l, err)
	}
}

// Each bad configuration and what the error says of it.
func TestValidate(t *testing.T) {
	list := func(change func(l *List)) Config {
		l := blockList("a", "/a")
		change(&l)
		return Config{Lists: []List{l}}
	}
	allow := allowList("b", "/b")
	cases := []struct {
		name string
		c    Config
		want string // "" for a good one
	}{
		{"nothing", Config{}, ""},
		{"one list", list(func(*List) {}), ""},
		{"header action", list(func(l *List) { l.HeaderAction = verdict.Monitor }), ""},
		{"subset family", Config{Filter: Filter{Family: "classic:RS,AP"}}, ""},
		{"unconfirmed", Config{FilterOnly: true, Lists: []List{blockList("a", "/a")}}, ""},
		{"no name", list(func(l *List) { l.Name = "" }), `list "": the name must not be empty`},
		{"control in the name", list(func(l *List) { l.Name = "a\nb" }), `list "a\nb": the name must not`},
		{"space after the name", list(func(l *List) { l.Name = "a " }), `the name must not`},
		{"invalid UTF-8 in the name", list(func(l *List) { l.Name = "\xff" }), `the name must not`},
		{"name twice", Config{Lists: []List{blockList("a", "/a"), blockList("a", "/b")}}, `list "a" stands twice`},
		{"no path", list(func(l *List) { l.Paths = nil }), `list "a": no path`},
		{"relative path", list(func(l *List) { l.Paths = []string{"a.txt"} }), `path "a.txt" is not absolute`},
		{"bad glob", list(func(l *List) { l.Paths = []string{"/a["} }), `path "/a[" is no valid glob`},
		{"block accepts", list(func(l *List) { l.Action = verdict.Accept }), `action accept is none of a block list's: use reject, defer, discard, tag or monitor`},
		{"unknown action", list(func(l *List) { l.Action = 9 }), `action Action(9)`},
		{"unknown header action", list(func(l *List) { l.HeaderAction = 9 }), `header action Action(9)`},
		{"block overrides", list(func(l *List) { l.Override = true }), `override is for allow lists`},
		{"allow rejects", list(func(l *List) { l.Type = Allow }), `an allow list has no action`},
		{"unknown type", list(func(l *List) { l.Type = 7 }), `unknown type ListType(7): use block or allow`},
		{"unknown stage", list(func(l *List) { l.Stages = 8 }), `unknown stage 8`},
		{"family", Config{Filter: Filter{Family: "quantum"}}, `"quantum"`},
		{"negative poll", Config{PollInterval: -1}, `use positive times`},
		{"debounce", Config{Debounce: 2, MaxDebounce: 1}, `use positive times`},
		{"unconfirmed, no list", Config{FilterOnly: true}, `confirm = false`},
		{"unconfirmed, two lists", Config{FilterOnly: true, Lists: []List{blockList("a", "/a"), blockList("b", "/b")}}, `confirm = false`},
		{"unconfirmed, allow", Config{FilterOnly: true, Lists: []List{allow}}, `confirm = false`},
	}
	for _, c := range cases {
		err := c.c.Validate()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	// All that is wrong is said at once.
	both := list(func(l *List) { l.Paths, l.Name = nil, "" })
	if err := both.Validate(); !strings.Contains(err.Error(), "name") || !strings.Contains(err.Error(), "path") {
		t.Error(err)
	}
}
