package smtpfilter_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// TestRecipientSet asks sets for recipients.
func TestRecipientSet(t *testing.T) {
	for _, tt := range []struct{ entries, has, hasNot string }{
		{"", "", "ann@example.net|postmaster"},
		{"ann@example.net", "ann@example.net|ANN@EXAMPLE.NET.|ann+tag@example.net", "an@example.net|ann@sub.example.net|ann-tag@example.net|ann"},
		{"ann+tag@example.net", "ann+tag@example.net", "ann@example.net|ann+other@example.net"},
		{"@example.net", "ann@example.net", "ann@sub.example.net"},
		{"example.net", "ann@example.net|ann@a.b.example.net", "ann@anexample.net|ann@net"},
		{"*.example.net", "ann@a.b.example.net", "ann@example.net"},
		{"sales@", "sales@example.net|sales+x@example.org|Sales|sales@[192.0.2.1]", "ann@example.net"},
		{"@[192.0.2.1]", "ann@[192.0.2.1]", "ann@[192.0.2.2]"},
		{"@xn--bcher-kva.example", "ann@bücher.example", ""},
		{`"a b"@example.net`, `"a b"@example.net|"A\ b"@example.net|"a b+tag"@example.net`, "ab@example.net"},
		{"@example.net|!ann@example.net", "bob@example.net", "ann@example.net|ann+tag@example.net"},
		{"@example.net|!ann@example.net|ann+tag@example.net", "ann+tag@example.net", "ann@example.net|ann+other@example.net"},
		{"ann@example.net|!example.net", "ann@example.net", "bob@example.net"},
		{"@example.net|!@example.net", "", "ann@example.net"},
		{"!ann@example.net", "", "ann@example.net|bob@example.net"},
		{"example.net|sales@|!sales@", "sales@example.net", "sales@example.org"},
		{"example.net", "a\xffb@example.net|a..b@example.net", ""}, // the former has no normal form
	} {
		split := func(s string) []string {
			return slices.DeleteFunc(strings.Split(s, "|"), func(s string) bool { return s == "" })
		}
		s := smtpfilter.NewRecipientSet(slices.Values(split(tt.entries)))
		for want, all := range map[bool]string{true: tt.has, false: tt.hasNot} {
			for _, rcpt := range split(all) {
				if s.Has(verdict.ParseRecipient(rcpt)) != want {
					t.Errorf("%q: %q: %v, want %v", tt.entries, rcpt, !want, want)
				}
			}
		}
	}
}

// TestRecipientSetPlain compares random sets with a plain search over the texts of their entries.
func TestRecipientSetPlain(t *testing.T) {
	const seed = 16
	r := rand.New(rand.NewPCG(seed, seed))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	domain := func() string { return pick("", "a.", "b.a.") + pick("c.d", "d", "e.d") }
	local := func() string { return pick("u", "v", "u+t", "+t") }
	for range 20_000 {
		var entries []string
		for range r.IntN(6) {
			entries = append(entries, pick("", "", "!")+pick(local()+"@"+domain(), "@"+domain(), domain(), "*."+domain(), local()+"@"))
		}
		s := smtpfilter.NewRecipientSet(slices.Values(entries))
		for range 4 {
			l, d := local(), domain()
			if got, want := s.Has(verdict.ParseRecipient(l+"@"+d)), plainHas(entries, l, d); got != want {
				t.Fatalf("seed %d: %q has %s@%s: %v, want %v", seed, entries, l, d, got, want)
			}
		}
	}
}

// plainHas is RecipientSet.Has for entries as text.
func plainHas(entries []string, local, domain string) bool {
	base := local
	if i := strings.LastIndexByte(local, '+'); i > 0 {
		base = local[:i]
	}
	forms := []string{local + "@" + domain, base + "@" + domain, "@" + domain, domain}
	for d := domain; strings.Contains(d, "."); {
		_, d, _ = strings.Cut(d, ".")
		forms = append(forms, "*."+d, d)
	}
	for _, form := range append(forms, local+"@", base+"@") {
		if slices.Contains(entries, "!"+form) {
			return false
		}
		if slices.Contains(entries, form) {
			return true
		}
	}
	return false
}

// TestRecipientSetAllocs wants a question to a large set to allocate nothing.
func TestRecipientSetAllocs(t *testing.T) {
	s := smtpfilter.NewRecipientSet(func(yield func(string) bool) {
		for i := range 100_000 {
			if !yield(fmt.Sprintf("user%d@example.net", i)) {
				return
			}
		}
	})
	if s.Len() != 100_000 {
		t.Errorf("%d entries", s.Len())
	}
	rcpt := verdict.ParseRecipient("nobody+tag@a.b.c.example.org")
	if n := testing.AllocsPerRun(10, func() { s.Has(rcpt) }); n > 0 {
		t.Errorf("a question allocates %v times", n)
	}
}

func BenchmarkRecipientSet(b *testing.B) {
	s := smtpfilter.NewRecipientSet(slices.Values([]string{"@example.net", "!ann@example.net"}))
	rcpt := verdict.ParseRecipient("bob@example.net")
	for b.Loop() {
		s.Has(rcpt)
	}
}
