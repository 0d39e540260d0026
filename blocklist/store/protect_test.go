package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
)

// Each entry, and whether it covers example.co.uk or its subdomains, or mail.example.com, which
// is protected alone.
func TestProtected(t *testing.T) {
	names := []string{"example.co.uk", "@mail.example.com"}
	p, err := Protect(names)
	must(t, err)
	for entry, want := range map[string]string{
		"example.co.uk":            "example.co.uk",
		"@example.co.uk":           "example.co.uk",
		"*.example.co.uk":          "example.co.uk",
		".example.co.uk":           "example.co.uk",
		"www.example.co.uk":        "example.co.uk",
		"@a.example.co.uk":         "example.co.uk",
		"*.a.example.co.uk":        "example.co.uk",
		"anexample.co.uk":          "",
		"u@w.example.co.uk":        "",
		"a.mail.example.com":       "",
		"*.mail.example.com":       "",
		"@a.mail.example.com":      "",
		"mail.example.com.example": "",
		"u@example.co.uk":          "",
		"u@":                       "",
		"!example.co.uk":           "",
		"*.co.uk":                  "example.co.uk",
		"co.uk":                    "example.co.uk",
		"@co.uk":                   "", // that domain alone
		"mail.example.com":         "mail.example.com",
		"example.com":              "mail.example.com",
		"*.example.com":            "mail.example.com",
		"@example.com":             "",
		"com":                      "mail.example.com",
		"example.net":              "",
		"<>":                       "",
	} {
		l := blockList("spam", write(t, inDir(t, "spam.txt"), entry+" # a reason\n"))
		l.AllowPublicSuffix = true
		c := fast(l)
		c.Protect = names
		stats := build(t, c).Stats().Lists[0]
		if got := stats.Protected == 1; got != (want != "") || stats.Entries+stats.Protected != 1 {
			t.Errorf("%s: %+v", entry, stats)
		} else if got && (len(stats.Problems) != 1 || !stats.Problems[0].Protected || !strings.Contains(stats.Problems[0].What, want) || stats.Problems[0].Line != 1) {
			t.Errorf("%s: %+v", entry, stats.Problems)
		}
	}
	if p.names != "@mail.example.com example.co.uk" {
		t.Error(p.names)
	}
	if err := (Config{Protect: []string{"no name"}}).Validate(); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Error(err)
	}
}

// What becomes of such an entry, by what the list says; an allow list may have it.
func TestOnProtected(t *testing.T) {
	text := "example.com\nfriend@example.net\nexample.net\n"
	cases := []struct {
		name string
		l    func(l *List)
		want verdict.Action
		err  error
		says string
	}{
		{"nothing said", func(l *List) {}, verdict.Accept, nil, ""},
		{"skip", func(l *List) { l.OnProtected = SkipProtected }, verdict.Accept, nil, ""},
		{"accept", func(l *List) { l.OnProtected = AcceptProtected }, verdict.Reject, nil, ""},
		{"hold", func(l *List) { l.OnProtected = HoldProtected }, verdict.Accept, ErrProtected, `take the entry out, or set on_protected = "skip"`},
		{"hold, from a URL", func(l *List) { l.OnProtected, l.URL = HoldProtected, "https://lists.example/spam" }, verdict.Accept, ErrProtected, `have it taken out where the list comes from, or set on_protected = "skip"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, inDir(t, "spam.txt"), "example.com\n")
			l := blockList("spam", path)
			c.l(&l)
			conf := fast(l)
			conf.Protect = []string{"example.net"}
			var log logBuffer
			conf.Logger = log.logger()
			s := openStill(t, conf)
			write(t, path, text)
			set, err := rescan(t, s)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if c.err != nil && (!strings.Contains(err.Error(), path+":3: ") || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("said: %v", err)
			}
			if listed(t, set, "u@example.com") != verdict.Reject || listed(t, set, "u@example.net") != c.want {
				t.Errorf("%+v", set.Stats().Lists[0])
			}
			if skipped := log.lines("covers a protected name"); c.err == nil && len(skipped) != 1-int(c.want/verdict.Reject) {
				t.Errorf("log: %q", skipped)
			}
		})
	}
	allow := allowList("friends", write(t, inDir(t, "friends.txt"), "example.net\n"))
	c := fast(allow)
	c.Protect = []string{"example.net"}
	if n := build(t, c).Stats().Entries; n != 1 {
		t.Errorf("%d entries in an allow list", n)
	}
}

// A reload with the same names does not read the lists again, with others it does.
func TestReloadOfProtected(t *testing.T) {
	c := fast(blockList("spam", write(t, inDir(t, "spam.txt"), "example.com\nexample.net\n")))
	c.Protect = []string{"example.net", "example.org"}
	s := openStill(t, c)
	before := versionAt(s, 0)
	c.Protect = []string{"example.org", "example.net"}
	must(t, s.Reload(context.Background(), c))
	if versionAt(s, 0) != before {
		t.Error("read again")
	}
	c.Protect = nil
	must(t, s.Reload(context.Background(), c))
	if listed(t, s.Set(), "u@example.net") != verdict.Reject {
		t.Error("protected still")
	}
}

// The lines that are described are the first of the file, however it is read.
func TestProblemsOfAllWorkers(t *testing.T) {
	var text strings.Builder
	for i := range 60_000 {
		switch i % 4 {
		case 0:
			text.WriteString("example.net\n")
		case 1:
			text.WriteString("no entry\n")
		default:
			fmt.Fprintf(&text, "host%d.example\n", i)
		}
	}
	for range 400_000 / 10 {
		fmt.Fprintf(&text, "filler%d.example # to have many workers\n", text.Len())
	}
	path := write(t, inDir(t, "spam.txt"), text.String())
	l := blockList("spam", path)
	c := fast(l)
	c.Protect = []string{"example.net"}
	s := newSource(&l)
	s.protected, _ = Protect(c.Protect)
	s.options.protect = s.protected.names
	stamps, err := anyFile.statFiles([]string{path})
	must(t, err)
	s.list.MinEntries = 0
	_, _, err = s.build(context.Background(), stamps)
	if !errors.Is(err, ErrInvalidLines) || !strings.Contains(err.Error(), ":2: ") || !strings.Contains(err.Error(), "15000 of 85000") {
		t.Error(err)
	}
}
