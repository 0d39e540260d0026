package listedit

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// add adds to a text.
func add(t *testing.T, old string, o listfile.Options, entries ...listfile.Line) (string, []Addition) {
	t.Helper()
	var b strings.Builder
	additions, err := Add(strings.NewReader(old), &b, o, entries)
	if errors.Is(err, ErrUnchanged) {
		return old, additions
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), additions
}

func TestAdd(t *testing.T) {
	const list = "# mine\nSpam.Example  # one\r\n\nother.example\n.spam.example. # two\n!press@spam.example"
	for _, test := range []struct {
		name  string
		entry listfile.Line
		want  string
		what  string
		line  int
	}{
		{"new", listfile.Line{Text: "New.Example", Reason: "r", Note: "n"}, list + "\nNew.Example  # r ## n\n", Added, 7},
		{"until", listfile.Line{Text: "new.example", Until: "2099-12-31"}, list + "\nnew.example  # until=2099-12-31\n", Added, 7},
		{"note alone", listfile.Line{Text: "new.example", Note: "n"}, list + "\nnew.example  ## n\n", Added, 7},
		{"there already", listfile.Line{Text: "spam.example", Reason: "one"}, list, Present, 2},
		{"another reason", listfile.Line{Text: "spam.example", Reason: "new"},
			"# mine\nSpam.Example  # new\r\n\nother.example\n!press@spam.example\n", Updated, 2},
		{"another note", listfile.Line{Text: "spam.example", Reason: "one", Note: "n"},
			"# mine\nSpam.Example  # one ## n\r\n\nother.example\n!press@spam.example\n", Updated, 2},
		{"an end", listfile.Line{Text: "OTHER.example.", Reason: "r", Until: "2099-12-31T10:00:00Z"},
			strings.Replace(list, "other.example", "other.example  # until=2099-12-31T10:00:00Z r", 1) + "\n", Updated, 4},
		{"cancelled", listfile.Line{Text: "press@spam.example", Reason: "r"}, list, Refused, 6},
		{"exception", listfile.Line{Text: "!other.example", Reason: "r"}, list + "\n!other.example  # r\n", Added, 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, additions := add(t, list, listfile.Options{}, test.entry)
			if a := additions[0]; got != test.want || a.What != test.what || a.Line != test.line {
				t.Errorf("%s, line %d; the list is\n%q, want\n%q", a.What, a.Line, got, test.want)
			}
		})
	}
}

// TestSides adds and removes lines for recipients. The other lines stay as they are.
func TestSides(t *testing.T) {
	const list = "# mine\nann@example.net\tNews.Example  # one\r\n\n@example.net   shop.example # ours\nAnn@Example.NET !deals@shop.example\n"
	sides := listfile.Options{PerRecipient: true}
	for _, test := range []struct {
		entry listfile.Line
		want  string
		what  string
		line  int
	}{
		{listfile.Line{Text: "bob@example.net  news.example", Reason: "r"}, list + "bob@example.net  news.example  # r\n", Added, 6},
		{listfile.Line{Text: "ANN@example.net news.example.", Reason: "r"}, strings.Replace(list, "News.Example  # one", "News.Example  # r", 1), Updated, 2},
		{listfile.Line{Text: "ann@example.net news.example", Reason: "one"}, list, Present, 2},
		{listfile.Line{Text: "ann@example.net deals@shop.example", Reason: "r"}, list, Refused, 5},
		{listfile.Line{Text: "bob@example.net deals@shop.example", Reason: "r"}, list + "bob@example.net deals@shop.example  # r\n", Added, 6},
	} {
		got, additions := add(t, list, sides, test.entry)
		if a := additions[0]; got != test.want || a.What != test.what || a.Line != test.line {
			t.Errorf("%s: %s, line %d; the list is\n%q, want\n%q", test.entry.Text, a.What, a.Line, got, test.want)
		}
	}
	e, err := listfile.ParseEntry("ann@example.net x@shop.example", sides)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Find(strings.NewReader(list), sides, []listfile.Entry{e})
	if err != nil || len(found[0].Removed) != 0 || len(found[0].Covered) != 1 || found[0].Covered[0].Line != 4 {
		t.Errorf("found %+v, %v; want line 4, which covers it", found, err)
	}
	var left strings.Builder
	e.Key = "news.example"
	if _, err := Remove(strings.NewReader(list), &left, sides, []listfile.Entry{e}); err != nil || left.String() != strings.Replace(list, "ann@example.net\tNews.Example  # one\r\n", "", 1) {
		t.Errorf("%q, %v", left.String(), err)
	}
}

// TestTextOfSides: a list reads the text of an entry for a recipient as that entry.
func TestTextOfSides(t *testing.T) {
	for _, o := range []listfile.Options{{PerRecipient: true}, {PerRecipient: true, Exact: true}} {
		for _, recipient := range []string{"ann@example.net", `"#a"@example.net`, `"a b"@example.net`, "@example.net", ".example.net", "*.example.net", "ann@", "@[192.0.2.1]", "bücher.example"} {
			for _, entry := range []string{"news.example", ".news.example", "!x@news.example", `"a b"@news.example`, "<>", "x@", "*.news.example"} {
				e, err := listfile.ParseEntry(recipient+" "+entry, o)
				if err != nil {
					t.Fatal(err)
				}
				again, err := listfile.ParseEntry(listfile.Text(e, o), o)
				if err != nil || again != e {
					t.Errorf("%+v written as %q is read as %+v, %v", e, listfile.Text(e, o), again, err)
				}
			}
		}
	}
}

func TestAddTwice(t *testing.T) {
	got, additions := add(t, "", listfile.Options{}, listfile.Line{Text: "a.example"}, listfile.Line{Text: "A.example."}, listfile.Line{Text: "!a.example"})
	if got != "a.example\n!a.example\n" || additions[1].What != Twice {
		t.Errorf("%q; %+v", got, additions)
	}
}

func TestAddRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"com":            "single label",
		"a b":            "white space",
		"#a@example.com": `write "#a"@example.com`,
	} {
		_, err := Add(strings.NewReader(""), io.Discard, listfile.Options{}, []listfile.Line{{Text: text}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	for _, n := range []listfile.Line{{Reason: "a\nb"}, {Note: "a\rb"}, {Reason: "a ## b"}, {Reason: "until=2099-12-31"}, {Reason: "# a"}, {Reason: "a", Note: "# b"}} {
		n.Text = "example.com"
		if e, err := n.Parse(listfile.Options{}); err == nil && (e.Reason != n.Reason || e.Note != n.Note) {
			t.Errorf("%+v: read as %+v", n, e)
		}
	}
	for _, tt := range []struct{ reason, until, want string }{
		{"until=2099-12-31", "", "give the time separately"},
		{"see until=soon", "", "give the time separately"},
		{"see until=2099-12-31", "2099-01-01", "given separately already, so remove until="},
		{"until=2099-12-31", "2100-01-01", "given separately already, so remove until="},
		{"until=soon", "2099-01-01", "given separately already, so remove until="},
		{"the-until=sign", "2099-01-01", ""},
		{"", "9999-12-30", ""},
		{"", "9999-12-31", "leave it out for an entry that counts for good"},
		{"", "9999-12-31T23:59:59-12:00", "leave it out"},
		{"", "10000-01-01T11:59:59Z", "leave it out"},
	} {
		_, err := listfile.Line{Text: "example.com", Reason: tt.reason, Until: tt.until}.Parse(listfile.Options{})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("reason %q, until %q: error %v, want %q", tt.reason, tt.until, err, tt.want)
		}
	}
	if _, err := Add(strings.NewReader("\x1f\x8bpacked"), io.Discard, listfile.Options{}, []listfile.Line{{Text: "a.example"}}); !errors.Is(err, ErrPacked) {
		t.Errorf("error %v", err)
	}
}

// FuzzAddRemove: what is added to any list and removed again leaves the list's
// other lines as they were.
func FuzzAddRemove(f *testing.F) {
	for _, list := range []string{"", "a.example\n", "a.example", "\ufeffa.example\r\nb.example\r\n", "# c", "\n\n", "bad line\n"} {
		f.Add(list, "new@example.com", "reason")
	}
	f.Fuzz(func(t *testing.T, list, text, reason string) {
		o := listfile.Options{}
		n := listfile.Line{Text: text, Reason: reason}
		e, err := n.Parse(o)
		if err != nil || strings.ContainsAny(list, "\x00\x1f\x28") || strings.HasPrefix(list, "\xff\xfe") || strings.HasPrefix(list, "\xfe\xff") {
			return
		}
		var longer, shorter strings.Builder
		additions, err := Add(strings.NewReader(list), &longer, o, []listfile.Line{n})
		if errors.Is(err, ErrUnchanged) || err == nil && additions[0].What != Added {
			return
		}
		if err != nil {
			t.Skip(err) // no list at all
		}
		removals, err := Remove(strings.NewReader(longer.String()), &shorter, o, []listfile.Entry{e})
		if err != nil || len(removals[0].Removed) != 1 || removals[0].Removed[0].Line != additions[0].Line {
			t.Fatalf("%q became %q, from which could not be removed: %v, %+v", list, longer.String(), err, removals)
		}
		want := strings.TrimRight(list, "\r\n")
		if got := strings.TrimRight(shorter.String(), "\r\n"); got != want && !(want == "" && got == NoEntries) {
			t.Fatalf("%q became %q and then %q", list, longer.String(), shorter.String())
		}
	})
}

func TestText(t *testing.T) {
	exact := listfile.Options{Exact: true}
	for _, test := range []struct {
		in   string
		o    listfile.Options
		want string
	}{
		{"Example.COM.", listfile.Options{}, "example.com"},
		{".example.com", exact, ".example.com"},
		{"example.com", exact, "@example.com"},
		{"!*@example.com", listfile.Options{}, "!@example.com"},
		{`"#a"@example.com`, listfile.Options{}, `"#a"@example.com`},
		{`"!a"@example.com`, listfile.Options{}, `"!a"@example.com`},
		{`"*a"@example.com`, listfile.Options{}, `"*a"@example.com`},
		{"<>", listfile.Options{}, "<>"},
	} {
		e, err := listfile.ParseEntry(test.in, test.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := listfile.Text(e, test.o); got != test.want {
			t.Errorf("%s is written %s, want %s", test.in, got, test.want)
		}
	}
}

// TestCovering: every address that an entry matches is matched by what covers it.
func TestCovering(t *testing.T) {
	addresses := []string{"user@a.example.com", "user+tag@example.com", "x@b.a.example.com", "user@other.example", "x@[192.0.2.1]", "<>"}
	entries := []string{
		"user@a.example.com", "user+tag@example.com", "@example.com", "@a.example.com", "example.com", "a.example.com",
		"*.example.com", "*.a.example.com", "user@", "user+tag@", "@[192.0.2.1]", "x@[192.0.2.1]", "<>",
	}
	matches := func(key, address string) bool {
		a, err := sender.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(listfile.Matching(a), key)
	}
	parse := func(text string) listfile.Entry {
		e, err := listfile.ParseEntry(text, listfile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for _, text := range entries {
		e := parse(text)
		for _, key := range listfile.Covering(e.Key, e.Kind) {
			for _, address := range addresses {
				if matches(e.Key, address) && !matches(key, address) {
					t.Errorf("%s is said to cover %s, and does not match %s", key, text, address)
				}
			}
		}
	}
	for _, test := range []struct{ narrow, broad string }{
		{"user@a.example.com", "@a.example.com"}, {"user@a.example.com", "*.example.com"}, {"user+tag@example.com", "user@example.com"},
		{"@a.example.com", "a.example.com"}, {"a.example.com", "*.example.com"}, {"*.a.example.com", "example.com"},
		{"*.example.com", "example.com"}, {"user+tag@", "user@"}, {"x@[192.0.2.1]", "@[192.0.2.1]"},
	} {
		if e := parse(test.narrow); !slices.Contains(listfile.Covering(e.Key, e.Kind), parse(test.broad).Key) {
			t.Errorf("%s covers %s", test.broad, test.narrow)
		}
	}
	if e := parse("example.com"); slices.Contains(listfile.Covering(e.Key, e.Kind), "*.example.com") {
		t.Error("*.example.com does not cover example.com")
	}
}
