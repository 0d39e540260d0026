package lists

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
)

// matchingKeys returns those keys that match an address, the most specific first.
func matchingKeys(t *testing.T, address string, keys []string) (matching []string) {
	t.Helper()
	a, err := sender.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range listedit.Matching(a) {
		if slices.Contains(keys, key) {
			matching = append(matching, key)
		}
	}
	return matching
}

// TestRecipientPatterns: the first pattern that matches a recipient has the keys that a lookup
// finds, for random keys that overlap.
func TestRecipientPatterns(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	locals := []string{"ann", "ann+x", "bob", `"a b"`, "o'neil/x"}
	names := []string{"example.net", "sales.example.net", "a.sales.example.net", "xn--bcher-kva.example", "[192.0.2.1]"}
	pick := func(s []string) string { return s[r.IntN(len(s))] }
	for range 1000 {
		var keys []string
		for range 1 + r.IntN(6) {
			name := pick(names)
			key := []string{pick(locals) + "@" + name, "@" + name, name, "*." + name, pick(locals) + "@"}[r.IntN(5)]
			if !slices.Contains(keys, key) && (name[0] != '[' || strings.Contains(key, "@")) {
				keys = append(keys, key)
			}
		}
		patterns, err := recipientPatterns(keys)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			recipient := pick(append(locals, "carl", "ann+y")) + "@" + pick(append(names, "b.example.net", "xexample.net"))
			spelled := strings.NewReplacer("xn--bcher-kva", "bücher", `"`, pick([]string{"", `"`}), "example", "Example").Replace(recipient)
			var got []string
			for _, p := range patterns {
				if regexp.MustCompile("(?i)" + p.regexp).MatchString(spelled) {
					got = p.keys
					break
				}
			}
			if want := matchingKeys(t, recipient, keys); !slices.Equal(got, want) {
				t.Fatalf("%s (%s) with %q: got %q, want %q of %+v", recipient, spelled, keys, got, want, patterns)
			}
		}
	}
}

func TestManyRecipients(t *testing.T) {
	var keys []string
	for i := range maxRecipientPatterns + 1 {
		keys = append(keys, fmt.Sprintf("u%d@example.net", i))
	}
	if _, err := recipientPatterns(keys[1:]); err != nil {
		t.Error(err)
	}
	if _, err := recipientPatterns(keys); err != errManyRecipients {
		t.Errorf("%d recipients: %v", len(keys), err)
	}
}

// decides returns what a list says of a sender: its most specific entry that matches.
func decides(t *testing.T, address string, entries []listfile.Entry) (blocked, matched bool) {
	t.Helper()
	a, err := sender.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range listedit.Matching(a) {
		for _, e := range entries {
			if e.Key == key {
				return !e.Exception, true
			}
		}
	}
	return false, false
}

// TestMergeLines: a merged list blocks whom the first of several lists blocks that matches,
// unless an entry is reported as skipped; then it may block fewer.
func TestMergeLines(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	whole := 0
	for n := range 5000 {
		groups := make([][]listfile.Entry, 1+r.IntN(3))
		for i := range groups {
			for range r.IntN(4) {
				name := pick("spam.example", "a.spam.example", "b.example")
				text := pick("", "", "!") + pick(pick("u", "u+t", "v")+"@"+name, "@"+name, name, "*."+name, pick("u@", "v@"))
				e, err := listfile.ParseEntry(text, listfile.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(groups[i], func(x listfile.Entry) bool { return x.Key == e.Key }) {
					groups[i] = append(groups[i], e)
				}
			}
		}
		skipped := 0
		merged := mergeLines(groups, func(listfile.Entry, string) { skipped++ })
		if skipped == 0 {
			whole++
		}
		for range 10 {
			address := pick("u", "u+t", "u+s", "v", "w") + "@" + pick("", "x.") + pick("spam.example", "a.spam.example", "b.example")
			want := false
			for _, g := range groups {
				blocked, matched := decides(t, address, g)
				if matched {
					want = blocked
					break
				}
			}
			if got, _ := decides(t, address, merged); got != want && (got || skipped == 0) {
				t.Fatalf("case %d: %s: blocked %v, want %v; %d skipped; %+v merged to %+v", n, address, got, want, skipped, groups, merged)
			}
		}
	}
	if whole < 2500 {
		t.Errorf("only %d cases without a skipped entry", whole)
	}
}

// TestMergeExpiring: what ends decides nothing in a table, which has no ends.
func TestMergeExpiring(t *testing.T) {
	groups := [][]listfile.Entry{
		{{Key: "spam.example", Kind: sender.KindDomain, Until: 1 << 40}},
		{{Key: "@spam.example", Kind: sender.KindAtDomain}},
	}
	merged := mergeLines(groups, func(e listfile.Entry, what string) { t.Errorf("%s: %s", e.Key, what) })
	if len(merged) != 2 {
		t.Errorf("merged to %+v", merged)
	}
}

// TestRecipientRules reads a table of patterns as Postfix does.
func TestRecipientRules(t *testing.T) {
	c := &config.Config{Policy: config.Policy{ExemptRecipients: []string{"abuse@"}}, RecipientPolicies: []config.RecipientPolicy{
		{Match: config.Addresses{"example.net", "!sales.example.net", "boss@sales.example.net"}, Exempt: true},
		{Match: config.Addresses{"ann@", "!@lab.example.com"}, Lists: []string{"other"}},
		{Match: config.Addresses{"bob@example.com"}, MaxAction: "tag"},
		{Match: config.Addresses{"@example.com"}, MaxAction: "defer"},
		{Match: config.Addresses{"@lab.example.com"}, Lists: []string{"blocked"}},
	}}
	rules, err := recipientRules(c, config.List{Name: "blocked", Type: "block"}, "", func(what string) { t.Error(what) })
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	for _, rule := range rules {
		body := ""
		if !rule.none {
			body = "/^/\taction=" + rule.action + "\n"
		}
		rule.print(&table, body)
	}
	for recipient, want := range map[string]string{
		"postmaster@x.example":     "DUNNO",
		"Abuse+1@x.example":        "DUNNO",
		"carl@example.net":         "DUNNO",
		"carl@sales.example.net":   "action=",
		"boss@sales.example.net":   "DUNNO",
		"ann@sales.example.net":    "DUNNO",
		"ann@lab.example.com":      "action=",
		"bob+tag@example.com":      "action=WARN",
		"carl@EXAMPLE.com":         "action=DEFER",
		"carl@other.example":       "action=",
		"postmasterx@other.exampl": "action=",
	} {
		if got := lookUpRegexp(t, table.String(), recipient); got != want {
			t.Errorf("%s: %s, want %s\n%s", recipient, got, want, &table)
		}
	}
}

// lookUpRegexp looks up a text in a regexp_table(5).
func lookUpRegexp(t *testing.T, table, text string) string {
	t.Helper()
	var outer []bool // whether the lines before an if count
	counts := true
	for line := range strings.Lines(table) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), "/")
		not := strings.HasSuffix(word, "!")
		end := strings.LastIndexByte(rest, '/')
		matches := end >= 0 && regexp.MustCompile("(?i)"+rest[:max(end, 0)]).MatchString(text) != not
		switch {
		case strings.HasPrefix(word, "#"):
		case strings.HasPrefix(word, "if"):
			outer = append(outer, counts)
			counts = counts && matches
		case word == "endif":
			counts, outer = outer[len(outer)-1], outer[:len(outer)-1]
		case counts && matches:
			return strings.TrimSpace(rest[end+1:])
		}
	}
	return ""
}
