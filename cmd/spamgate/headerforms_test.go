package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// formCase is a header and the lists, and what the gate finds.
type formCase struct {
	name, header string
	block, allow string // entries, with ";" between
	override     bool
	kind         blocklist.Kind // of filter
	want         string         // the address that is refused, "" where none is
}

var formCases = []formCase{
	// What a server makes of it is listed.
	{name: "percent", header: "From: spam%listed.example", block: "spam@listed.example", want: "spam@listed.example"},
	{name: "bang", header: "From: Ann <listed.example!spam>", block: "@listed.example", want: "spam@listed.example"},
	{name: "space at the operator, beside an address", header: "From: spam % listed.example, Ann <a@b.example>", block: "listed.example", want: "spam@listed.example"},
	{name: "operator in a name, beside an address", header: "From: Save 50% at listed.example! Now, Ann <a@b.example>", block: "listed.example"},
	{name: "subdomain", header: "From: spam%a.listed.example", block: "listed.example", want: "spam@a.listed.example"},
	{name: "domain alone", header: "From: @a.listed.example", block: "*.listed.example", want: `""@a.listed.example`},
	{name: "literal", header: "From: spam%[192.0.2.7]", block: "@[192.0.2.7]", want: "spam@[192.0.2.7]"},
	{name: "nonsense before the domain", header: "From: spam%*.*.listed.example", block: "listed.example", want: "spam@*.*.listed.example"},

	// A local part alone.
	{name: "word", header: "From: spammer", block: "spammer@", want: "spammer@"},
	{name: "tag", header: "From: <Spammer+x>", block: "spammer@", want: "Spammer+x@"},
	{name: "tag of its own", header: "From: <spammer+x>", block: "spammer+x@", want: "spammer+x@"},
	{name: "another tag", header: "From: <spammer+y>", block: "spammer+x@"},
	{name: "recipient domain", header: "From: boss", block: "boss@example.org", want: "boss@example.org"},
	{name: "parent of recipient domains", header: "From: boss", block: "boss@sub.example", want: "boss@sub.example"},
	{name: "greeting name", header: "From: boss", block: "boss@mx.greeting.example", want: "boss@mx.greeting.example"},
	{name: "above the greeting name", header: "From: boss", block: "@greeting.example", want: "boss@greeting.example"},
	{name: "own domain", header: "From: Head Office", block: "example.org", want: "Head@example.org"},
	{name: "empty domain", header: "From: spam%listed.example@", block: "@listed.example", want: "spam@listed.example"},

	// An address that a server completes, or whose domain is the server's.
	{name: "host without a domain", header: "From: spam@host", block: "spam@host.example.org", want: "spam@host.example.org"},
	{name: "route in our domain", header: "From: spam%listed.example@example.org", block: "@listed.example", want: "spam@listed.example"},
	{name: "bang in the next hop's name", header: "From: listed.example!spam@mx.greeting.example", block: "@listed.example", want: "spam@listed.example"},
	{name: "route in a subdomain", header: "From: spam%listed.example@x.sub.example", block: "@listed.example", want: "spam@listed.example"},
	{name: "route by a name without a dot", header: "From: mx!listed.example!spam", block: "@listed.example", want: "spam@listed.example"},
	{name: "route twice", header: "From: spam%listed.example%example.org@example.org", block: "@listed.example", want: "spam@listed.example"},
	{name: "route elsewhere", header: "From: spam%listed.example@relay.example", block: "@listed.example"},

	// It never allows.
	{name: "allowed form", header: "From: spam%listed.example", block: "listed.example", allow: "spam@listed.example", want: "spam@listed.example"},
	{name: "override", header: "From: spammer", block: "spammer@", allow: "example.org; spammer@", override: true, want: "spammer@"},
	{name: "exception", header: "From: spam%listed.example", block: "@listed.example; !spam@listed.example", want: "spam@listed.example"},
	{name: "exception for another reading", header: "From: spammer", block: "spammer@; !spammer@example.org; !example.org", want: "spammer@"},
	{name: "an allowed form beside a listed address", header: "From: ok%fine.example, spam@listed.example", block: "@listed.example", allow: "fine.example; listed.example!spam", want: "spam@listed.example"},
	{name: "an allowed form and a listed sender of another field", header: "From: spam%listed.example\r\nSender: spam@listed.example", block: "@listed.example", allow: "spam%listed.example@example.org", want: "spam@listed.example"},

	// A proper address is judged as ever.
	{name: "allowed address", header: "From: spam@listed.example", block: "listed.example", allow: "spam@listed.example"},
	{name: "excepted address", header: "From: spam@listed.example", block: "@listed.example; !spam@listed.example"},

	// Nonsense before a domain hides no listed parent, whichever it is.
	{name: "one label of nonsense", header: "From: x@*.listed.example", block: "@listed.example", want: "x@*.listed.example"},
	{name: "two labels of nonsense", header: "From: x@*.*.listed.example", block: "@listed.example", want: "x@*.*.listed.example"},
	{name: "three labels of nonsense", header: "From: x@*.*.*.listed.example", block: "@listed.example", want: "x@*.*.*.listed.example"},
	{name: "nonsense in the middle", header: "From: x@a.*.b.listed.example", block: "@b.listed.example", want: "x@a.*.b.listed.example"},
	{name: "only the longest parent", header: "From: x@*.b.listed.example", block: "@listed.example"},
	{name: "too many labels", header: "From: x@" + strings.Repeat("a.", 200) + "listed.example", block: "listed.example",
		want: "x@" + strings.Repeat("a.", 200) + "listed.example"},
	{name: "the longest parent of too many labels", header: "From: x@" + strings.Repeat("a.", 200) + "listed.example",
		block: "@" + strings.Repeat("a.", 120) + "listed.example", want: "x@" + strings.Repeat("a.", 200) + "listed.example"},
	{name: "a local part longer than a line of a list", header: "From: " + strings.Repeat("a", 5000) + "@b.listed.example", block: "listed.example",
		want: strings.Repeat("a", 4096) + "@b.listed.example"},
	{name: "its tag", header: "From: spammer+" + strings.Repeat("a", 5000) + "@b.example", block: "spammer@",
		want: "spammer+" + strings.Repeat("a", 4096-8) + "@b.example"},

	// Names turn no mail away.
	{name: "display name", header: "From: spammer <a@b.example>", block: "spammer@; example.org"},
	{name: "quoted display name", header: `From: "spam%listed.example" <a@b.example>`, block: "@listed.example"},
	{name: "name split at its comma", header: "From: Smith, Ann <a@b.example>", block: "example.org; greeting.example"},
	{name: "the same, listed by name", header: "From: Smith, Ann <a@b.example>", block: "smith@", want: "Smith@"},
	{name: "the same, listed as an address", header: "From: Smith, Ann <a@b.example>", block: "smith@example.org", want: "Smith@example.org"},
	{name: "an exclamation mark in a name", header: "From: Yahoo! Mail, Inc. <a@b.example>", block: "example.org; greeting.example"},
	{name: "a percent sign in a name", header: "From: Save 50% at shop.example! Now, Bob <a@b.example>", block: "example.org; shop.example"},
	{name: "the same, listed as an address", header: "From: Yahoo! Mail, Inc. <a@b.example>", block: "mail@yahoo.example.org", want: "Mail@Yahoo.example.org"},
	{name: "an at sign in a name", header: "From: Sales @ Acme, Inc. <a@b.example>", block: "example.org; greeting.example"},
	{name: "the same, listed by name", header: "From: Sales @ Acme, Inc. <a@b.example>", block: "sales@", want: "Sales@Acme"},
	{name: "the same, alone", header: "From: Sales @ Acme", block: "example.org", want: "Sales@Acme.example.org"},
	{name: "a nickname in brackets", header: "From: Ann <ceo> <a@b.example>", block: "example.org"},
	{name: "a name beside an allowed address", header: "From: Support, Acme <help@partner.example>", block: "support@", allow: "partner.example"},
	{name: "the same, listed as an address", header: "From: Support, Acme <help@partner.example>", block: "support@example.org", allow: "partner.example", want: "Support@example.org"},
	{name: "a name beside an address that is not allowed", header: "From: Support, Acme <help@partner.example>, a@b.example", block: "support@", allow: "partner.example", want: "Support@"},
	{name: "a word alone, and an allowed address elsewhere", header: "From: support\r\nSender: help@partner.example", block: "support@", allow: "partner.example", want: "support@"},
	{name: "a comment", header: "From: a@b.example (spammer)", block: "spammer@"},
	{name: "no domain can begin so", header: "From: @\" ?\"", block: "a@; example.org"},
	{name: "a domain in quotes after a space", header: "From: @\" a\"", block: "a.example.org", want: "\"\"@a.example.org"},
	{name: "no sender at all", header: "From: undisclosed-recipients:;", block: "example.org; undisclosed-recipients@"},
}

// Forms of the header that are no address are judged by what servers may make of
// them: they block, and never allow.
func TestHeaderForms(t *testing.T) {
	for _, c := range formCases {
		t.Run(c.name, func(t *testing.T) {
			c.kind = blocklist.KindSized
			p := smtpfilter.Policy{HeaderFields: []string{"From", "Sender"}, RecipientDomains: []string{"example.org", ".sub.example"}}
			j := judge.New(formLists(t, c).Only(nil))
			var findings []verdict.Finding
			for f := range p.JudgeHeader(context.Background(), j, &verdict.Message{}, p.ReadHeader([]byte(c.header+"\r\n"), []string{"mx.greeting.example"}), &verdict.For{}) {
				findings = append(findings, *f)
			}
			decided := verdict.Decide(findings, false)
			got := ""
			if decided.Verdict.Action == verdict.Reject {
				got = decided.Address
			}
			if got != c.want {
				t.Errorf("refused is %q, want %q: %+v", got, c.want, findings)
			}
		})
	}
}

// formLists are the lists of a case.
func formLists(t testing.TB, c formCase) *blocklist.Set {
	t.Helper()
	dir := t.TempDir()
	config := store.Config{Filter: blocklist.Filter{Kind: c.kind}}
	add := func(name, entries string, list store.List) {
		if entries == "" {
			return
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(entries, "; ", "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		list.Name, list.Paths = name, []string{path}
		config.Lists = append(config.Lists, list)
	}
	add("blocked", c.block, store.List{Action: verdict.Reject})
	add("allowed", c.allow, store.List{Type: blocklist.Allow, Override: c.override})
	set, _, err := store.Build(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
