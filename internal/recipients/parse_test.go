package recipients

import (
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// TestParseDomains reads files with recipient domains.
func TestParseDomains(t *testing.T) {
	long := strings.Repeat("x", listfile.MaxLine)
	for text, want := range map[string]struct {
		domains string
		invalid int
		first   int
	}{
		"":                                    {},
		"# none\n\n   # none either\n":        {},
		"example.com\n.Example.ORG.\n":        {domains: "example.com .example.org"},
		"\ufeffexample.com\r\nbücher.example": {domains: "example.com xn--bcher-kva.example"},
		"example.com # customer 7\nexample.com x\n":  {domains: "example.com"},
		"example.com  OK\n  \t continued\nb.example": {domains: "example.com b.example"},
		"  example.com\n\tb.example\n":               {domains: "example.com b.example"},
		"a.example # text\n  b.example":              {domains: "a.example b.example"},
		"[192.0.2.1]\n":                              {domains: "[192.0.2.1]"},
		"a.example\nuser@b.example\n*.c.example\n":   {domains: "a.example", invalid: 2, first: 2},
		"<html>\n<body>\n":                           {invalid: 2, first: 1},
		"a.example\n" + long + "\nb.example\n":       {domains: "a.example b.example", invalid: 1, first: 2},
		"a.example\n\x00\x01\x02":                    {domains: "a.example", invalid: 1, first: 2},
	} {
		c, err := parse(strings.NewReader(text), RecipientDomains)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.domains.Names(), " "); got != want.domains || c.invalid != want.invalid || c.first.Line != want.first || c.entries() != len(c.domains.Names()) {
			t.Errorf("%.40q: %q, %d invalid, the first in line %d; want %+v", text, got, c.invalid, c.first.Line, want)
		}
	}
}

// TestParseAddresses reads files with valid recipients, and asks for recipients.
func TestParseAddresses(t *testing.T) {
	const file = `# people
ann@example.com      local delivery
Bob+list@Example.com # with a tag
"quoted user"@example.com x
@all.example
größe@bücher.example
user@
example.com
+only@example.com
`
	c, err := parse(strings.NewReader(file), ValidRecipients)
	if err != nil {
		t.Fatal(err)
	}
	if c.entries() != 6 || c.invalid != 2 || c.first.Line != 7 || c.lines != 8 {
		t.Errorf("%d entries, %d invalid of %d lines, the first in line %d", c.entries(), c.invalid, c.lines, c.first.Line)
	}
	for rcpt, want := range map[string]bool{
		"ann@example.com": true, "ANN@example.COM": true, "ann+tag@example.com": true, "ann+a+b@example.com": true,
		"ann-tag@example.com": false, "an@example.com": false, "ann@example.net": false, "ann@sub.example.com": false,
		"bob@example.com": false, "bob+list@example.com": true, "bob+other@example.com": false,
		`"quoted user"@example.com`: true, "anyone@all.example": true, "anyone@sub.all.example": false,
		"GRÖSSE@bücher.example": true, "größe@xn--bcher-kva.example": true, "+only@example.com": true, "+tag@example.com": false,
	} {
		if got := c.addresses.Has(verdict.ParseRecipient(rcpt)); got != want {
			t.Errorf("%s: %v, want %v", rcpt, got, want)
		}
	}
	rcpt := verdict.ParseRecipient("ann+tag@example.com")
	if n := testing.AllocsPerRun(10, func() { c.addresses.Has(rcpt) }); n > 0 {
		t.Errorf("a question allocates %v times", n)
	}
}

// FuzzParse wants any file to be read without a panic, each line to be counted, and what was
// read to be the same when it is written down and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"example.com\n.b.example OK\n  more\n", "\ufeffa.example\r\n#x\n", "\"a b\"@example.com x", "a\\\"b\n\x00", "@\n@@\n[::1]\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse(strings.NewReader(string(data)), RecipientDomains)
		if err != nil {
			t.Fatal(err)
		}
		if c.invalid > c.lines || c.entries() > c.lines-c.invalid || c.lines > strings.Count(string(data), "\n")+1 {
			t.Errorf("%d entries, %d invalid, %d lines", c.entries(), c.invalid, c.lines)
		}
		again, err := parse(strings.NewReader(strings.Join(c.domains.Names(), "\n")), RecipientDomains)
		if err != nil || again.invalid > 0 || !slices.Equal(again.domains.Names(), c.domains.Names()) {
			t.Errorf("read again: %q, not %q", again.domains.Names(), c.domains.Names())
		}
		if c, err := parse(strings.NewReader(string(data)), ValidRecipients); err != nil || c.invalid > c.lines {
			t.Errorf("addresses: %+v, %v", c, err)
		}
	})
}

// TestParsePolicy reads files with the recipients of a policy, and asks for recipients.
func TestParsePolicy(t *testing.T) {
	c, err := parse(strings.NewReader("@sales.example  OK\n!Boss@sales.example # not him\nhelp@\n.bücher.example\n<>\ncom\n*.example.com\n192.0.2.1\n"), RecipientPolicy)
	if err != nil || c.entries() != 5 || c.invalid != 3 || c.lines != 8 || c.first.Line != 5 {
		t.Fatalf("%+v, %d entries, %v", c, c.entries(), err)
	}
	for rcpt, want := range map[string]bool{
		"ann@sales.example": true, "boss+tag@sales.example": false, "help@anywhere.example": true,
		"ann@sub.bücher.example": true, "ann@example.com": false, "ann@a.example.com": true,
	} {
		if got := c.set.Has(verdict.ParseRecipient(rcpt)); got != want {
			t.Errorf("%s: %v, want %v", rcpt, got, want)
		}
	}
}
