package dnslist

import (
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct{ domain, want string }{
		{"example.com", "example.com"},
		{"mail.example.com", "mail.example.com example.com"},
		{"a.b.example.co.uk", "a.b.example.co.uk b.example.co.uk example.co.uk"},
		{"co.uk", "co.uk"},
		{"mail.example.ck", "mail.example.ck"}, // all names below ck are suffixes
		{"user.github.io", "user.github.io github.io"},
		{"x.internal", "x.internal"},
	} {
		if got := appendNames(nil, c.domain); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, want %q", c.domain, got, c.want)
		}
	}
}

func TestIsDomain(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Repeat(label+".", 3) + strings.Repeat("a", 57) + ".com"
	for _, c := range []struct {
		domain string
		want   bool
	}{
		{"example.com", true},
		{"bounce_1.xn--bcher-kva.example", true},
		{label + ".example", true},
		{label + "a.example", false},
		{long, true},
		{"b" + long, false},
		{"", false},
		{"localhost", false},
		{".example.com", false},
		{"example.com.", false},
		{"a..example", false},
		{"[192.0.2.1]", false},
		{"[ipv6:2001:db8::1]", false},
		{"192.0.2.1", false},
		{"192.0.2.1a", true},
		{"a!b.example", false},
		{"a b.example", false},
		{`a\.b.example`, false},
		{"bücher.example", false},
	} {
		if got := isDomain(c.domain); got != c.want {
			t.Errorf("%q: %v, want %v", c.domain, got, c.want)
		}
	}
	if len(long) != maxName {
		t.Errorf("the long domain has %d bytes, want %d", len(long), maxName)
	}
}

func TestCheckZone(t *testing.T) {
	for zone, want := range map[string]string{
		"dbl.example.org":                    "",
		"DBL.Example.org":                    "",
		"dbl.example.org.":                   "without a dot",
		".example.org":                       "without a dot",
		"":                                   "is not the name of a list",
		"example":                            "is not the name of a list",
		"192.0.2.1/24":                       "is not the name of a list",
		"a b.example":                        "is not the name of a list",
		strings.Repeat("a.", 63) + "example": "at most 126 bytes",
	} {
		if err := CheckZone(zone); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("zone %q: %v, want %q", zone, err, want)
		}
	}
	for test, ok := range map[string]bool{
		"TEST": true, "dbltest.com": true, "permanent-test.example": true,
		"": false, "a b": false, "TEST.": false, strings.Repeat("a.", 120) + "a": false,
	} {
		if err := CheckTest(test, "dbl.example.org"); (err == nil) != ok {
			t.Errorf("test point %q: %v", test, err)
		}
	}
}
