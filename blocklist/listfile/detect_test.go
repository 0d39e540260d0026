package listfile

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestDetectSamples(t *testing.T) {
	for file, want := range samples(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, why := Detect(text)
		if got != want {
			t.Errorf("%s: %s, because %s; want %s", file, got, why, want)
		}
		t.Logf("%s: %s", file, why)
		crlf := strings.ReplaceAll(string(text), "\n", "\r\n")
		if got, why := Detect([]byte(bom + crlf)); got != want {
			t.Errorf("%s with CRLF and a byte order mark: %s, because %s", file, got, why)
		}
		o := Options{Format: want, Now: sampleNow, Discard: true}
		asSet := readOnce(strings.NewReader(string(text)), o)
		o.Format = Auto
		asSeen := readOnce(strings.NewReader(string(text)), o)
		if asSeen.result.Format != want || len(asSeen.entries) != len(asSet.entries) {
			t.Errorf("%s: read as %s, %d entries, want %d", file, asSeen.result.Format, len(asSeen.entries), len(asSet.entries))
		}
		if n := asSeen.result.Notes; len(n) == 0 || !strings.HasPrefix(n[0], "recognised as "+kinds[want]+": ") {
			t.Errorf("%s: notes %q", file, n)
		}
	}
}

// TestDetect: what might be several things is a plain list.
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		text string
		want Format
	}{
		{"", Plain},
		{"\n\n", Plain},
		{"# nothing yet\n", Plain},
		{"example.com\n", Plain},
		{"example.com\n.example.net\n*.example.org\n!good.example.com\n", Plain}, // a dnset or a plain list
		{"! a comment\n||example.com^\n", Adblock},
		{"@[192.0.2.1]\n", Plain},
		{"[192.0.2.1]\n", Plain},
		{"<html>\n<body>\n", Plain},
		{"user@example.com # REJECT\n", Plain},
		{"user@example.com REJECT\n", PostfixAccess},
		{"bad.example: reject\n", Exim},
		{"user@bad.example:\n\"q@bad.example\": text\n", Exim},
		{"From:x@bad.example REJECT\n", Sendmail},
		{"From: ann@bad.example\n", Plain},
		{"bad.example REJECT\nworse.example REJECT\nTo:x@bad.example REJECT\nFrom:a.example OK\nworst.example ERROR:550 no\n", Sendmail},
		{"DOMAIN-SUFFIX,bad.example\n", ruleSet},
		{"# of Surge\nDOMAIN,bad.example,REJECT\nhost-suffix, worse.example, reject\n", ruleSet},
		{"payload:\n  - '+.bad.example'\n", ruleSet},
		{"domain,reason\nbad.example,spam\n", CSV},
		{"DOMAIN,FIRST_SEEN\nbad.example,2026\n", CSV},
		{"server:\n  local-zone: \"bad.example\" always_nxdomain\n", unbound},
		{"zone \"bad.example\" { type master; file \"null\"; };\n", namedConf},
		{"example.com 550 no\n", PostfixAccess},
		{"127.0.0.1 localhost\n", Hosts},
		{"192.0.2.1\n192.0.2.2\n", Plain},
		{"example.com\nexample.net\n/^spam/\n", Plain}, // one stray line
		{"example.com 5\nexample.net 3\n", Rspamd},
		{"0 example.com\n", Hosts},
		{"127.1 example.com\n", Hosts},
		{"7 example.com\n", Plain},
		{"https://example.com/\n", URLs},
		{"https://example.com/x # seen\nftp://example.net\n", URLs},
		{"example.com\nexample.net\nhttps://example.org/\n", Plain}, // one stray line
		{"https://example.com/,1\nhttps://example.net/,2\n", CSV},
		{"{\"data\": [", JSON},
		{"{\"domain\": \"example.com\"}\n", JSON},
		{" [ {\"domain\"", JSON},
		{"{}\n", JSON},
		{"[]\n", JSON},
		{"{example.com}\n", Plain},
		{"example.com,1\n", Plain}, // one line is no table
		{"example.com,1\nexample.net,2\n", CSV},
		{"example.com,1\nexample.net\n", Plain},
		{"example.com # one, two\nexample.net # three, four\n", Plain},
		{"[]", JSON},
		{"[\n\"example.com\"]", JSON},
		{"example.com\n$TTL 60\n", RPZ},
		{"example.com CNAME .\n", RPZ},
		{"address=/example.com/\n", Dnsmasq},
		{"blacklist_from a@example.com\n", SpamAssassin},
		{":127.0.0.2:spam\nexample.com\n", RBLDNSD},
		{"example.com :127.0.0.2:spam\nexample.net\n", RBLDNSD},
		{"example.com # is :127.0.0.2: elsewhere\nexample.net\n", Plain},
		{"# zone :127.0.0.2: of old\nexample.com OK\nexample.net REJECT a :127.0.0.2: b\n", PostfixAccess},
		{"#$5 a month buys the longer list\n0.0.0.0 example.com\n", Hosts},
		{"#$NS 1d ns.example.com\nexample.com\n", RBLDNSD},
		{"example.com\nexample.net\n||stray.example.com^\n", Plain},
		{"example.com\nexample.net\naddress=/stray.example.com/\n", Plain},
		{"example.com # was CNAME .\nexample.net\n", Plain},
		{"required_score 5.0\nuse_bayes 1\nendif\nscore X 4\nblocklist_from *@example.com\n", SpamAssassin},
		{"! Title: names\nexample.com\nexample.net\n", Adblock},
	} {
		if got, why := Detect([]byte(c.text)); got != c.want || why == "" {
			t.Errorf("%q: %s, because %s; want %s", c.text, got, why, c.want)
		}
	}
}

// TestWrongFormat: where the set format is not what the file looks like, its
// first problem says so.
func TestWrongFormat(t *testing.T) {
	text := "0.0.0.0 a.example.com\n0.0.0.0 b.example.com\n0.0.0.0 c.example.com\n"
	_, problems, _ := mustRead(t, text, Options{})
	if want := `this looks like a hosts file: set format = "hosts"`; len(problems) != 3 || problems[0].Hint != want || problems[1].Hint == want {
		t.Errorf("%v", problems)
	}
	if _, problems, _ = mustRead(t, text[:20], Options{}); problems[0].Hint != "write a.example.co" {
		t.Errorf("one line alone may be a slip: %v", problems)
	}
	_, problems, _ = mustRead(t, "||a.example^\n||b.example^\n||c.example^\n", Options{Format: Hosts})
	if want := `this looks like an ad blocker's list: set format = "adblock"`; problems[0].Hint != want {
		t.Errorf("%v", problems)
	}
}

// TestForeign: a file of a format that is not read is named, and refused if the format is to be
// recognised. In another format the first problem says so.
func TestForeign(t *testing.T) {
	for text, format := range map[string]Format{
		"DOMAIN-SUFFIX,bad.example\nDOMAIN-KEYWORD,spam\nIP-CIDR,192.0.2.0/24\n": ruleSet,
		"local-zone: \"bad.example\" always_nxdomain\n":                          unbound,
		"zone \"bad.example\" { type master; };\n":                               namedConf,
	} {
		err := readOnce(strings.NewReader(text), Options{Format: Auto}).err
		if !errors.Is(err, ErrNotList) || !strings.Contains(err.Error(), string(format)+" (line 1: ") {
			t.Errorf("%q: %v", text, err)
		}
		got := readParallel(strings.NewReader(text), Options{Format: Auto}, 2)
		if !errors.Is(got.err, ErrNotList) {
			t.Errorf("%q: %v", text, got.err)
		}
		_, problems, _ := mustRead(t, text, Options{})
		if want := "this looks like " + string(format) + ", which cannot be read here: "; len(problems) == 0 || !strings.HasPrefix(problems[0].Hint, want) {
			t.Errorf("%q: %v", text, problems)
		}
	}
	entries, _, _ := mustRead(t, "DOMAIN-SUFFIX,bad.example\nDOMAIN-SUFFIX,worse.example\n", Options{Format: CSV, Column: "2"})
	if len(entries) != 2 {
		t.Errorf("a column that is named is read: %v", entries)
	}
}

func TestUnknownFormat(t *testing.T) {
	for _, workers := range []int{1, 2} {
		got := readParallel(strings.NewReader("x"), Options{Format: "xml"}, workers)
		if got.err == nil || !strings.Contains(got.err.Error(), `unknown format "xml"; use one of auto, plain, hosts`) {
			t.Error(got.err)
		}
	}
	for _, f := range Formats {
		if f != Auto && kinds[f] == "" {
			t.Errorf("%s has no name", f)
		}
		if _, err := grammarOf(f); err != nil && f != Auto {
			t.Error(err)
		}
	}
}
