package nexthop

import (
	"reflect"
	"strings"
	"testing"

	"spamgate/smtpfilter/wire"
)

// extensions reads "SIZE 100, PIPELINING".
func extensions(text string) wire.Extensions {
	lines := []string{"x"}
	if text != "" {
		lines = append(lines, strings.Split(text, ",")...)
	}
	return wire.ParseExtensions(wire.NewReply(250, lines...))
}

func TestGroupExtensions(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"PIPELINING, DSN, 8BITMIME", "dsn, 8BITMIME, CHUNKING", "DSN, 8BITMIME"},
		{"SIZE 100", "SIZE 99", "SIZE 99"},
		{"SIZE 9", "SIZE 10", "SIZE 9"},
		{"SIZE 0", "SIZE 10", "SIZE 10"},
		{"SIZE 10", "SIZE", "SIZE 10"},
		{"SIZE", "SIZE 0", "SIZE"},
		{"SIZE x", "SIZE 5", "SIZE 5"},
		{"SIZE 5", "DSN", ""},
		{"AUTH PLAIN LOGIN", "AUTH login XOAUTH2", "AUTH LOGIN"},
		{"AUTH PLAIN", "AUTH LOGIN", ""},
		{"DELIVERBY 60", "DELIVERBY 60", "DELIVERBY 60"},
		{"DELIVERBY 60", "DELIVERBY 61", ""},
		{"LIMITS RCPTMAX=10", "LIMITS", ""},
	} {
		g, _ := testGroup(t, GroupConfig{}, &fakeTarget{name: "a", extensions: extensions(c.a)}, &fakeTarget{name: "b", extensions: extensions(c.b)})
		got, want := g.Extensions(), extensions(c.want)
		if len(got) != len(want) {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
		for keyword, params := range want {
			if !got.Has(keyword) || !reflect.DeepEqual(append([]string{}, got[keyword]...), append([]string{}, params...)) {
				t.Errorf("%s and %s: %v", c.a, c.b, got)
			}
		}
	}
}

// TestExtensionsOfThoseUp: a member that is down takes nothing away, unless all
// are.
func TestExtensionsOfThoseUp(t *testing.T) {
	g, _ := testGroup(t, GroupConfig{}, &fakeTarget{name: "a", extensions: extensions("DSN, SIZE 10")}, &fakeTarget{name: "b", extensions: extensions("DSN")})
	g.members[1].failed(errStop)
	if got := g.Extensions(); len(got) != 2 {
		t.Error(got)
	}
	g.members[0].failed(errStop)
	if got := g.Extensions(); len(got) != 1 {
		t.Error(got)
	}
}
