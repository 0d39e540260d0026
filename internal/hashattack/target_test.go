package hashattack

import (
	"strings"
	"testing"
)

func TestReadTarget(t *testing.T) {
	label := strings.Repeat("x", 63)
	for _, tt := range []struct {
		text string
		want string // the target; "" where an error is wanted
		says string // in the error, beside what to give
	}{
		{"example.com", "example.com", ""},
		{" Example.COM. ", "example.com", ""},
		{"bücher.example", "xn--bcher-kva.example", ""},
		{"bounce_1.example", "bounce_1.example", ""},
		{"a.uk", "a.uk", ""},
		{"foo.github.io", "foo.github.io", ""},
		{"", "", "there is no entry"},
		{"com", "", "a single label"},
		{"co.uk", "", "a public suffix"},
		{"spam@example.com", "", "the domain alone"},
		{"@example.com", "", "the domain alone"},
		{"*.example.com", "", "the domain alone"},
		{"!example.com", "", "the domain alone"},
		{"<>", "", "the domain alone"},
		{"192.0.2.1", "", "IP address"},
		{"a..example", "", "empty label"},
		{"https://example.com/", "", "give a domain"},
		{"a.b", "", "too short"},
		{"a\x00b.com", "", "control character"},
		{strings.Join([]string{label, label, label, label, label}, "."), "", "bytes"},
	} {
		got, err := readTarget(tt.text)
		if tt.want != "" {
			if err != nil || got != tt.want {
				t.Errorf("%q: %q, %v; want %q", tt.text, got, err, tt.want)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "give ") {
			t.Errorf("%q: %q, %v; want an error that says %s", tt.text, got, err, tt.says)
		}
	}
}

func TestEnding(t *testing.T) {
	for target, want := range map[string]string{
		"example.com":            ".com",
		"mail.example.com":       ".com",
		"bbc.co.uk":              ".co.uk",
		"bbc.uk":                 "c.uk",
		"a.uk":                   "a.uk",
		"foo.github.io":          "b.io",
		"foo.blogspot.co.uk":     ".co.uk",
		"x.example":              ".example",
		"sub.x.example":          ".example",
		"abc.d":                  "bc.d",
		"www.ck":                 "w.ck",
		"xn--bcher-kva.xn--p1ai": ".xn--p1ai",
	} {
		if got := ending(target); got != want {
			t.Errorf("ending(%q) = %q, want %q", target, got, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	const target = "mail.example.com"
	for name, says := range map[string]string{
		"other.com":          "",
		"xexample.com":       "",
		"xmail.example.com":  "",
		"other.example.com":  "",
		"mail.example.com":   "itself",
		"example.com":        "itself",
		"a.mail.example.com": "owner",
		"Other.com":          "not a domain in normal form",
		"@other.com":         "not a domain in normal form",
		"user@other.com":     "not a domain in normal form",
		"com":                "single label",
		"co.uk":              "public suffix",
		"-.-":                "",
	} {
		err := checkName(name, target)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, want %q", name, err, says)
		}
	}
}

// TestTowerLabels checks that the searched part and what the ending adds to it
// are labels, for endings of every shape.
func TestTowerLabels(t *testing.T) {
	for _, target := range []string{"example.com", "a.uk", "bbc.co.uk", "abcdefgh.d", "ab.c", "www.ck", "x.example", "x.ph", "test5.ph"} {
		tower := newTower(teams[0], target, nil, 1)
		path := string(tower.path())
		if err := checkName(path, target); err != nil {
			t.Errorf("%s: %s: %v", target, path, err)
		}
		for label := range strings.SplitSeq(path, ".") {
			if len(label) < 1 || len(label) > maxLabel {
				t.Errorf("%s: label %q", target, label)
			}
		}
		if !strings.HasSuffix(path, target[len(target)-4:]) {
			t.Errorf("%s: %s ends in other bytes", target, path)
		}
	}
}
