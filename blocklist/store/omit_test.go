package store

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/providers"
)

// What a list from a URL leaves out, by its keys. Lists of one's own, and exceptions, have
// all of it.
func TestOmissions(t *testing.T) {
	text := "<>\nnoreply@\ninfo@\n!mailer-daemon@\nmail.gmail.example\nfriend@mail.gmail.example\nspam.example\n"
	cases := []struct {
		name                  string
		l                     func(l *List)
		protected, disallowed int
		rejected              []string
	}{
		{"path", func(l *List) {}, 1, 0, []string{"", "noreply@x.example", "info@x.example"}},
		{"url", func(l *List) { l.URL = "https://lists.example/" }, 1, 3, nil},
		{"null sender", func(l *List) { l.URL, l.AllowNullSender = "https://lists.example/", true }, 1, 2, []string{""}},
		{"local parts", func(l *List) { l.URL, l.AllowLocalParts = "https://lists.example/", true }, 1, 1, []string{"noreply@x.example", "info@x.example"}},
		{"on_protected", func(l *List) { l.URL, l.OnProtected = "https://lists.example/", AcceptProtected }, 0, 3, []string{"u@mail.gmail.example"}},
		{"hold", func(l *List) { l.URL, l.OnProtected = "https://lists.example/", HoldProtected }, 0, 0, nil},
	}
	all := []string{"", "noreply@x.example", "info@x.example", "mailer-daemon@x.example", "u@mail.gmail.example"}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := blockList("spam", write(t, inDir(t, "spam.txt"), text))
			c.l(&l)
			conf := fast(l)
			conf.Protect = []string{"gmail.example"}
			if l.OnProtected == HoldProtected { // without a version, and the reason names the line
				if _, _, err := Build(t.Context(), conf); err == nil || !strings.Contains(err.Error(), "spam.txt:5: ") {
					t.Error(err)
				}
				return
			}
			set := build(t, conf)
			if s := set.Stats().Lists[0]; s.Protected != c.protected || s.Disallowed != c.disallowed || s.Entries != 7-c.protected-c.disallowed {
				t.Errorf("%+v", s)
			}
			for _, address := range all {
				want := verdict.Accept
				if slices.Contains(c.rejected, address) {
					want = verdict.Reject
				}
				if got := listed(t, set, address); got != want {
					t.Errorf("<%s>: %v, want %v", address, got, want)
				}
			}
			for _, address := range []string{"friend@mail.gmail.example", "u@a.spam.example"} {
				if listed(t, set, address) != verdict.Reject {
					t.Errorf("%s is not listed", address)
				}
			}
		})
	}
	allow := allowList("friends", write(t, inDir(t, "friends.txt"), text[:strings.IndexByte(text, '!')]))
	allow.URL = "https://lists.example/"
	if s := build(t, fast(allow)).Stats().Lists[0]; s.Entries != 0 || s.Disallowed != 3 {
		t.Errorf("an allow list from a URL: %+v", s)
	}
}

// The entries come from any format, and each one that is left out says why.
func TestOmissionsOfFormats(t *testing.T) {
	for format, text := range map[listfile.Format]string{
		listfile.Plain:         "noreply@\n<>\nmail.gmail.example\n",
		listfile.PostfixAccess: "noreply@ REJECT\n<> REJECT\nmail.gmail.example REJECT\n",
		listfile.SpamAssassin:  "blocklist_from noreply@*\nblocklist_from *@mail.gmail.example\n",
		listfile.JSON:          `["noreply@", "<>", "mail.gmail.example"]`,
		listfile.CSV:           "entry\nnoreply@\n<>\nmail.gmail.example\n",
		listfile.Hosts:         "0.0.0.0 mail.gmail.example\n",
		listfile.Adblock:       "||mail.gmail.example^\n",
		listfile.RPZ:           "*.gmail.example CNAME .\n",
		listfile.Rspamd:        "mail.gmail.example\n",
		listfile.RBLDNSD:       ".gmail.example\n",
		listfile.Dnsmasq:       "address=/mail.gmail.example/\n",
	} {
		l := blockList("spam", write(t, inDir(t, "spam.txt"), text))
		l.URL, l.Format = "https://lists.example/", format
		c := fast(l)
		c.Protect = []string{"gmail.example"}
		s := build(t, c).Stats().Lists[0]
		if s.Entries != 0 || s.Protected != 1 || len(s.Problems) != s.Protected+s.Disallowed+min(s.Invalid, blocklist.MaxProblems)+s.Unsupported {
			t.Errorf("%s: %+v", format, s)
		}
		for _, p := range s.Problems {
			if (p.Protected || p.Disallowed) && (p.What == "" || p.Hint == "") {
				t.Errorf("%s: %+v", format, p)
			}
		}
	}
}

// A protected domain is protected from exactly the entries that share senders with it or,
// if it has "@", from those that have all of its own.
func TestProtectedProperty(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 4))
	label := func() string { return []string{"a", "b", "com"}[rnd.IntN(3)] }
	domain := func(most int) string {
		labels := make([]string, 1+rnd.IntN(most))
		for i := range labels {
			labels[i] = label()
		}
		return strings.Join(labels, ".")
	}
	below := func(d, name string) bool { return strings.HasSuffix(d, "."+name) }
	for range unlessShort(20_000, 2000) {
		var names []string
		for range 1 + rnd.IntN(3) {
			names = append(names, []string{"", "@"}[rnd.IntN(2)]+domain(4))
		}
		p, err := Protect(names)
		must(t, err)
		d := domain(5)
		for kind, key := range map[sender.Kind]string{
			sender.KindDomain: d, sender.KindAtDomain: "@" + d, sender.KindSubdomains: "*." + d, sender.KindAddress: "u@" + d, sender.KindLocal: "u@",
		} {
			want := slices.ContainsFunc(names, func(name string) bool {
				name, alone := strings.CutPrefix(name, "@")
				within := !alone && (d == name || below(d, name))
				switch kind {
				case sender.KindDomain:
					return d == name || below(name, d) || within
				case sender.KindAtDomain:
					return d == name || within
				case sender.KindSubdomains:
					return below(name, d) || within
				}
				return false
			})
			if name, _ := p.covered(kind, key); (name != "") != want {
				t.Fatalf("%q protected, %s: %q", names, key, name)
			}
		}
	}
}

// Deciding about an entry takes no memory: lists have millions.
func TestOmissionsAllocateNothing(t *testing.T) {
	names, err := Protect([]string{"gmail.example", "example.co.uk", "@mail.example"})
	must(t, err)
	l := List{URL: "https://lists.example/"}
	o := l.Omissions(names)
	entries := []listfile.Entry{
		{Key: "a.b.c.d.example", Kind: sender.KindDomain}, {Key: "@mail.gmail.example", Kind: sender.KindAtDomain},
		{Key: "u@gmail.example", Kind: sender.KindAddress}, {Key: "info@", Kind: sender.KindLocal},
	}
	omitted := 0
	if n := testing.AllocsPerRun(100, func() {
		for i := range entries {
			if o.Of(&entries[i]).Omitted() {
				omitted++
			}
		}
	}); n != 0 || omitted != 2*101 {
		t.Errorf("%v allocations, %d left out", n, omitted)
	}
}

// BenchmarkOmissions decides about a domain that is not protected.
func BenchmarkOmissions(b *testing.B) {
	names, err := Protect(providers.Domains())
	must(b, err)
	l := List{URL: "https://lists.example/"}
	o := l.Omissions(names)
	e := listfile.Entry{Key: "host12345.bulk.example", Kind: sender.KindDomain}
	for b.Loop() {
		if o.Of(&e).Omitted() {
			b.Fatal(e)
		}
	}
}
