package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/verdict"
)

// personalList is a block list with lines for recipients.
func personalList(paths ...string) List {
	l := blockList("personal", paths...)
	l.PerRecipient = true
	return l
}

// recipientLines are lines of so many recipients, one each.
func recipientLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "user%d@example.net news%d.example\n", i, i)
	}
	return b.String()
}

// refusedFor reports whether a sender is refused for a recipient, and the keys of the recipient.
func refusedFor(tb testing.TB, set *blocklist.Set, recipient, address string) (refused bool, keys []string) {
	tb.Helper()
	v := set.Only(nil)
	keys, err := v.RecipientKeys(parse(tb, recipient))
	must(tb, err)
	found, err := v.Find(verdict.Envelope, parse(tb, address), blocklist.FindOptions{For: keys})
	must(tb, err)
	return blocklist.Decide([]blocklist.Found{found}, nil).Action == verdict.Reject, keys
}

// TestPerRecipientFile: what is read, counted, left out and reported, and that it is there
// after another start.
func TestPerRecipientFile(t *testing.T) {
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	l := personalList(write(t, inDir(t, "personal.txt"), `# whose mail, and from whom not
ann@example.net news.example  # asked for
ann@example.net news.example
ann@example.net !daily.news.example
@example.net    shop.example  # until=`+soon+`
@example.net    old.example   # until=2001-01-01
bob@example.net example.com
news.example
`))
	c := stateful(t, l)
	c.Protect = []string{"example.com"}
	for _, when := range []string{"read", "opened"} {
		set := once(t, c)
		s := set.Stats().Lists[0]
		if s.Entries != 4 || s.Duplicates != 1 || s.Exceptions != 1 || s.Expired != 1 || s.Protected != 1 || s.Invalid != 1 || s.NextExpiry.IsZero() {
			t.Errorf("%s: %+v", when, s)
		}
		for i, want := range []string{`line 8: "news.example": only one address on the line`, `line 7: "bob@example.net example.com": it covers all of example.com`} {
			if len(s.Problems) != 2 || !strings.HasPrefix(s.Problems[1-i].String(), want) && !strings.HasPrefix(s.Problems[i].String(), want) {
				t.Errorf("%s: %v, want %s", when, s.Problems, want)
			}
		}
		if got := set.Stats().Keys; got != 5 { // three entries and two markers
			t.Errorf("%s: %d keys", when, got)
		}
		for _, tt := range []struct {
			recipient, sender string
			want              bool
		}{
			{"ann@example.net", "x@news.example", true},
			{"ann@example.net", "x@daily.news.example", false},
			{"ann@example.net", "x@shop.example", true},
			{"bob@example.net", "x@shop.example", true},
			{"bob@example.net", "x@news.example", false},
			{"bob@example.net", "x@example.com", false},
		} {
			if got, keys := refusedFor(t, set, tt.recipient, tt.sender); got != tt.want {
				t.Errorf("%s: %s to %s, keys %q: refused %v", when, tt.sender, tt.recipient, keys, got)
			}
		}
	}
}

// TestPerRecipientSetting: the stored version of a list is not used once the list is read in the
// other way, with the same file.
func TestPerRecipientSetting(t *testing.T) {
	c := stateful(t, personalList(write(t, inDir(t, "personal.txt"), "ann@example.net news.example\n")))
	c.StoredFirst = true
	for i, perRecipient := range []bool{true, false, true} {
		c.Lists[0].PerRecipient = perRecipient
		set := once(t, c)
		refused, keys := refusedFor(t, set, "ann@example.net", "x@news.example")
		if refused != perRecipient || (len(keys) == 1) != perRecipient || set.Stats().Entries > 0 != perRecipient {
			t.Errorf("start %d: refused %v, keys %q, %+v", i, refused, keys, set.Stats().Lists[0].Problems)
		}
	}
}

// TestPerRecipientGuards: the guards count lines, and no markers.
func TestPerRecipientGuards(t *testing.T) {
	path := write(t, inDir(t, "personal.txt"), recipientLines(2000))
	s := openStill(t, stateful(t, personalList(path)))
	for _, tt := range []struct {
		text string
		want error
		says string
	}{
		{recipientLines(1700), nil, ""},
		{recipientLines(1300), ErrShrunk, "from 1700 entries to 1300"},
		{recipientLines(1700) + strings.Repeat("news.example\n", 18), ErrInvalidLines, "only one address on the line"},
		{recipientLines(1700) + strings.Repeat("news.example\n", 10), nil, ""},
		{recipientLines(20_001), ErrGrown, "from 2000 entries to 20001"},
		{strings.ReplaceAll(recipientLines(1700), " news", " !news"), ErrExceptions, "from 0 to 1700"},
	} {
		replace(t, path, tt.text)
		_, err := rescan(t, s)
		if !errors.Is(err, tt.want) || tt.want != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%v, want %v: %s", err, tt.want, tt.says)
		}
	}
	if n := s.Set().Stats().Entries; n != 1700 {
		t.Errorf("%d entries", n)
	}
}

// TestPerRecipientFilters: after another start and after changes, with each kind of filter, each
// recipient with lines is found, and one whose last line is gone is not looked up.
func TestPerRecipientFilters(t *testing.T) {
	n := unlessShort(2*partKeys, partKeys)
	for _, kind := range []blocklist.Kind{blocklist.KindClassic, blocklist.KindSharded, blocklist.KindSized, blocklist.KindCounting, blocklist.KindFuse} {
		t.Run(string(kind), func(t *testing.T) {
			path := write(t, inDir(t, "personal.txt"), recipientLines(n))
			other := write(t, inDir(t, "other.txt"), "other.example\n")
			c := stateful(t, personalList(path), blockList("other", other))
			c.Filter.Kind = kind
			check := func(set *blocklist.Set, n int) {
				t.Helper()
				for i := 0; i < n; i += 97 {
					recipient, address := fmt.Sprintf("user%d@example.net", i), fmt.Sprintf("x@news%d.example", i)
					if refused, keys := refusedFor(t, set, recipient, address); !refused || len(keys) != 1 {
						t.Fatalf("%s to %s: refused %v, keys %q", address, recipient, refused, keys)
					}
				}
				if _, keys := refusedFor(t, set, fmt.Sprintf("user%d@example.net", n), "x@news.example"); keys != nil {
					t.Errorf("keys %q of a recipient without lines", keys)
				}
				if listed(t, set, "x@other.example") != verdict.Reject || set.Stats().Lists[0].Entries != n || set.Stats().Lists[0].Duplicates != 0 {
					t.Errorf("%+v", set.Stats().Lists)
				}
			}
			check(once(t, c), n)
			s := openStill(t, c)
			check(s.Set(), n)
			replace(t, other, "other.example\nmore.example\n")
			set, err := rescan(t, s)
			must(t, err)
			check(set, n)
			replace(t, path, recipientLines(n-1))
			set, err = rescan(t, s)
			must(t, err)
			check(set, n-1)
		})
	}
}

// TestPerRecipientHistory: an earlier version is kept, and a pin holds what serves.
func TestPerRecipientHistory(t *testing.T) {
	path := write(t, inDir(t, "personal.txt"), "ann@example.net a.example\n")
	c := stateful(t, personalList(path))
	c.History = 2
	s := openStill(t, c)
	s.running.Wait() // until the version is kept
	_, err := s.Pin(context.Background(), "personal", blocklist.Pin{Since: time.Now().UTC()})
	must(t, err)
	replace(t, path, "ann@example.net b.example\n")
	if set, err := rescan(t, s); !errors.Is(err, ErrPinned) {
		t.Error(err)
	} else if refused, _ := refusedFor(t, set, "ann@example.net", "x@a.example"); !refused {
		t.Error("the pinned version does not serve")
	}
	must(t, s.Unpin(context.Background(), "personal"))
	set, err := rescan(t, s)
	must(t, err)
	if refused, _ := refusedFor(t, set, "ann@example.net", "x@b.example"); !refused {
		t.Error("the new version does not serve")
	}
	s.running.Wait()
	versions, err := Versions(c.StateDir, "personal")
	must(t, err)
	if len(versions) != 2 || versions[0].Entries != 1 || versions[1].Entries != 1 {
		t.Errorf("%+v", versions)
	}
}

// TestPerRecipientChecks: settings that do not go together.
func TestPerRecipientChecks(t *testing.T) {
	path := write(t, inDir(t, "personal.txt"), "ann@example.net news.example\n")
	for want, change := range map[string]func(c *Config){
		`format "hosts" has no recipients: use format plain, or leave out per_recipient`: func(c *Config) { c.Lists[0].Format = "hosts" },
		`format "auto" has no recipients`:                                                func(c *Config) { c.Lists[0].Format = "auto" },
		`a list in DNS has no entries for recipients`:                                    func(c *Config) { c.Lists[0].Paths, c.Lists[0].Zone = nil, "bl.example" },
		`one block list without per_recipient`:                                           func(c *Config) { c.FilterOnly = true },
		`proven_by is for allow lists`:                                                   func(c *Config) { c.Lists[0].ProvenBy = verdict.SPF },
		"":                                                                               func(c *Config) { c.Lists[0].Format = "plain" },
	} {
		c := fast(personalList(path))
		change(&c)
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
