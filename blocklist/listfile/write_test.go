package listfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"spamgate/blocklist/sender"
)

// listOf returns the list that an index makes of entries: one entry for each key.
func listOf(entries []Entry) List {
	keys := map[string]Entry{}
	var order []string
	for _, e := range entries {
		before, there := keys[e.Key]
		if !there {
			order = append(order, e.Key)
		}
		if !there || e.Exception && !before.Exception {
			keys[e.Key] = e
		}
	}
	return List{
		Entries: func(yield func(Entry) bool) {
			for _, key := range order {
				if !yield(keys[key]) {
					return
				}
			}
		},
		Lookup: func(key string) (Entry, bool) {
			e, ok := keys[key]
			return e, ok
		},
	}
}

// writeList writes a list and reads it again, as a list with such options.
func writeList(t *testing.T, list List, o WriteOptions) (text string, left []Problem, back found) {
	t.Helper()
	var b bytes.Buffer
	written, err := Write(&b, list, o, func(p Problem) { left = append(left, p) })
	if err != nil {
		t.Fatal(err)
	}
	if n := len(slices.Collect(list.Entries)); written+len(left) != n {
		t.Errorf("%s: %d written and %d left of %d", o.Format, written, len(left), n)
	}
	exact := o.Exact || o.Format == PostfixAccess && o.DotSubdomains
	back = readOnce(bytes.NewReader(b.Bytes()), Options{Format: o.Format, Exact: exact, Allow: o.Allow, AllowPublicSuffix: true, Now: 1})
	if o.Format == Rspamd { // regular expressions, which no Reader reads
		return b.String(), left, found{}
	}
	if o.Format == PostfixAccess { // see checkDecisions
		back.problems = slices.DeleteFunc(back.problems, func(p Problem) bool { return p.What == errClient.what })
	}
	if back.err != nil || len(back.problems) > 0 {
		t.Errorf("%s: read with %v, %v\n%s", o.Format, back.problems, back.err, b.String())
	}
	return b.String(), left, back
}

// decision returns what a list says of an address.
func decision(list List, a sender.Address) int {
	walk := a.Walk(nil)
	for key, ok := walk.Next(); ok; key, ok = walk.Next() {
		if e, ok := list.Lookup(string(key.Text)); ok {
			return strict(e, true)
		}
	}
	return unlisted
}

// sendersOf returns senders that the entries of a list are about.
func sendersOf(t *testing.T, list List) (senders []sender.Address) {
	t.Helper()
	for e := range list.Entries {
		var texts []string
		switch name := nameOf(e.Key); e.Kind {
		case sender.KindAddress:
			pos := strings.LastIndexByte(e.Key, '@')
			texts = []string{e.Key, "x" + e.Key[pos:]}
			if e.Key[0] != '"' {
				texts = append(texts, e.Key[:pos]+"+tag"+e.Key[pos:])
			}
		case sender.KindNull:
			texts = []string{"<>"}
		case sender.KindLocal:
			texts = []string{e.Key + "example.com", e.Key + "a.example"}
		default:
			texts = []string{"x@" + name, "user@" + name}
			if name[0] != '[' {
				texts = append(texts, "x@x."+name, "x@y.sub."+name)
			}
		}
		for _, text := range texts {
			if a, err := sender.Parse(text); err == nil {
				senders = append(senders, a)
			}
		}
	}
	return senders
}

// checkDecisions checks that what was written decides like the list, or lets more
// through if something was left.
func checkDecisions(t *testing.T, o WriteOptions, list, back List, left int) (milder int) {
	t.Helper()
	if o.Format == Rspamd {
		return 0 // see TestWriteMap
	}
	for _, a := range sendersOf(t, list) {
		if o.Format == PostfixAccess && !a.IsNull() && isIP(a.Domain()) {
			continue // the same pattern in a table of clients means an address
		}
		want, got := max(decision(list, a), excepted), max(decision(back, a), excepted)
		if got < want {
			milder++
		}
		if o.Allow && got < want {
			want = got // an allow list that lets less through
		}
		if got > want || got != want && left == 0 {
			t.Fatalf("%+v: %s: %d, want %d", o, a, got, want)
		}
	}
	return milder
}

// allForms are all ways to write a list.
func allForms() (forms []WriteOptions) {
	for _, f := range Writable {
		forms = append(forms, WriteOptions{Format: f}, WriteOptions{Format: f, Exact: true})
	}
	return append(forms, WriteOptions{Format: PostfixAccess, DotSubdomains: true})
}

// TestWrite writes every entry of every sample in every format.
func TestWrite(t *testing.T) {
	var entries []Entry
	for file, format := range samples(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, readOnce(bytes.NewReader(text), Options{Format: format, Now: sampleNow}).entries...)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(describe(a), describe(b)) })
	list := listOf(entries)
	for _, o := range allForms() {
		_, left, back := writeList(t, list, o)
		milder := checkDecisions(t, o, list, listOf(back.entries), len(left))
		t.Logf("%+v: %d left, %d senders are let through by it", o, len(left), milder)
		for _, p := range left {
			if o.Format == Plain && !strings.Contains(p.What, errNoDefer.Error()) {
				t.Error(p)
			}
		}
	}
}

// TestWriteLineEnds: a reason or note is never more than its line.
func TestWriteLineEnds(t *testing.T) {
	for _, text := range []string{"a\nb.example.com", "a\r\n# b", "\n", "a\vb\x00c", "a\xffb", "a\u0085b"} {
		for _, o := range allForms() {
			e := Entry{Key: "a.example.com", Kind: sender.KindDomain, Reason: text, Note: text}
			written, left, _ := writeList(t, listOf([]Entry{e}), o)
			if len(left) > 0 || strings.ContainsAny(written, "\r\v\x00") || !utf8.ValidString(written) || strings.Contains(written, "\nb") {
				t.Errorf("%+v, %q: %q, %v", o, text, written, left)
			}
		}
	}
}

// randomList returns a list of few names, so that entries and exceptions meet, and of
// some that are odd in every way.
func randomList(random *rand.Rand, size int, allow bool) List {
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	locals := []string{"user", "user+tag", "x", "x", "user", "a+b", "#a", "!a", "a*", `"a b"`, `"a+b c"`, `"a#"`, `"a\"b"`, "é", "/x/", "if", "$ttl", "@", "$", ":a", ";a", "user.name", "blocklist_from", "||x", "0.0.0.0"}
	domains := []string{"example.com", "example.com", "sub.example.com", "y.sub.example.com", "x.y.sub.example.com", "com", "a.example", "x.a.example", "example",
		"bounce_1.example", "-ttl.example", "xn--bcher-kva.example", "[192.0.2.1]", "[ipv6:2001:db8::1]", "if.example", "a+b.example", "rpz-ip.example", "example.rpz-ip",
		"192.0.2.1", "_.example", "-x-.example", strings.Repeat("a", 63) + ".example.com", strings.Repeat("a.", 90) + "a.example"}
	texts := []string{"", "", "spam", "a # b", "a ## b", "# x", "until=x", "until=2030-01-01", "5.7.1 x", "$name costs $1", ":2:x", "; x", "a  b", "é☃", `"x"`, "REJECT x", "\\", "(", ")", strings.Repeat("long ", 200)}
	var entries []Entry
	for line := range size {
		text := pick("", "", "", ".", "*.", "@", "user@", "x@") + pick(domains...)
		if random.IntN(4) == 0 {
			text = pick(locals...) + "@" + pick(append(domains, "")...)
		}
		if random.IntN(3) == 0 {
			text = "!" + text
		}
		if random.IntN(50) == 0 {
			text = "<>"
		}
		e, err := ParseEntry(text, Options{AllowPublicSuffix: true, Allow: allow})
		if err != nil {
			continue
		}
		e.Line, e.Reason, e.Note = line+1, pick(texts...), pick(texts...)
		if random.IntN(10) == 0 {
			e.Until = 1 + random.Int64N(1<<33)
		}
		e.Defer = random.IntN(10) == 0 && !e.Exception && !allow
		entries = append(entries, e)
	}
	return listOf(entries)
}

// TestWriteRandom writes random lists: no format refuses a sender whom the list lets
// through, and a format that carries all entries decides like the list.
func TestWriteRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	whole := map[Format]int{}
	for range 100 {
		allow := random.IntN(5) == 0
		list := randomList(random, 1+random.IntN(20), allow)
		for _, o := range allForms() {
			o.Allow = allow
			_, left, back := writeList(t, list, o)
			checkDecisions(t, o, list, listOf(back.entries), len(left))
			if len(left) == 0 {
				whole[o.Format]++
			}
		}
	}
	for _, f := range Writable {
		if whole[f] < 3 && f != Rspamd {
			t.Errorf("%s: only %d lists were carried whole", f, whole[f])
		}
	}
	t.Log(whole)
}

// TestWriteMap does to an rspamd map what rspamd does: any line that matches counts.
func TestWriteMap(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		list := randomList(random, 1+random.IntN(10), false)
		text, left, _ := writeList(t, list, WriteOptions{Format: Rspamd})
		var lines []*regexp.Regexp
		for _, line := range strings.Split(strings.TrimPrefix(text, rspamdStart), "\n") {
			if line != "" {
				lines = append(lines, regexp.MustCompile("(?i)"+strings.TrimSuffix(line[1:], "/i")))
			}
		}
		for _, a := range sendersOf(t, list) {
			want := decision(list, a) >= deferred
			got := slices.ContainsFunc(lines, func(r *regexp.Regexp) bool { return r.MatchString(a.String()) })
			if got && !want || want && !got && len(left) == 0 {
				t.Fatalf("%s: %v, want %v; left %v\n%s", a, got, want, left, text)
			}
		}
	}
}

// TestWriteRoundTrip: what a plain or a JSON list is written as, and read again by such a
// list, is the same list.
func TestWriteRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		var entries []Entry
		for e := range randomList(random, 1+random.IntN(30), false).Entries {
			e.Defer = false
			e.Reason, e.Note = "a reason", "a note"
			entries = append(entries, e)
		}
		for _, exact := range []bool{false, true} {
			_, left, back := writeList(t, listOf(entries), WriteOptions{Format: Plain, Exact: exact})
			for i := range entries {
				entries[i].Line = i + 1
			}
			if len(left) > 0 || !slices.Equal(back.entries, entries) {
				t.Fatalf("exact %v: %v, left %v; want %v", exact, back.entries, left, entries)
			}
			bare := slices.Clone(entries)
			for i := range bare {
				bare[i].Until, bare[i].Reason, bare[i].Note = 0, "", ""
			}
			_, left, back = writeList(t, listOf(bare), WriteOptions{Format: JSON, Exact: exact})
			for i := range back.entries {
				back.entries[i].Line = bare[i].Line
			}
			if len(left) > 0 || !slices.Equal(back.entries, bare) {
				t.Fatalf("JSON, exact %v: %v, left %v; want %v", exact, back.entries, left, bare)
			}
		}
	}
}

// TestWriteTexts are what each format writes.
func TestWriteTexts(t *testing.T) {
	for _, c := range []struct {
		entries, texts string // parts that a space separates; a comma stands for it
		left           int
		o              WriteOptions
	}{
		{"d.example !d.example", "!d.example", 0, WriteOptions{Format: Plain}},
		{".d.example @e.example *.f.example", ".d.example @e.example *.f.example", 0, WriteOptions{Format: Plain, Exact: true}},
		{"d.example x@d.example", "d.example x@d.example", 0, WriteOptions{Format: Plain}},
		{"d.example !x@d.example", "d.example,CNAME,rpz-passthru. *.d.example,CNAME,.", 1, WriteOptions{Format: RPZ}},
		{"d.example a.b.d.example", "d.example,CNAME,. *.d.example,CNAME,. a.b.d.example,CNAME,. *.a.b.d.example,CNAME,. b.d.example,CNAME,. *.b.d.example,CNAME,.", 0, WriteOptions{Format: RPZ}},
		{"d.example !a.b.d.example", "d.example,CNAME,. *.d.example,CNAME,. a.b.d.example,CNAME,rpz-passthru. *.a.b.d.example,CNAME,rpz-passthru. b.d.example,CNAME,. *.b.d.example,CNAME,.", 0, WriteOptions{Format: RPZ}},
		{"*.d.example", "*.d.example,CNAME,.", 0, WriteOptions{Format: RPZ}},
		{"d.example", "d.example,CNAME,rpz-passthru. *.d.example,CNAME,rpz-passthru.", 0, WriteOptions{Format: RPZ, Allow: true}},
		{"d.example !@d.example", "!d.example *.d.example", 0, WriteOptions{Format: RBLDNSD}},
		{"d.example !d.example", "!.d.example", 0, WriteOptions{Format: RBLDNSD}},
		{"d.example !x@d.example x@e.example", "!d.example *.d.example", 2, WriteOptions{Format: RBLDNSD}},
		{"d.example !sub.d.example", "d.example,REJECT .d.example,REJECT sub.d.example,DUNNO .sub.d.example,DUNNO", 0, WriteOptions{Format: PostfixAccess}},
		{"@d.example *.e.example", "", 2, WriteOptions{Format: PostfixAccess}},
		{"@d.example *.e.example", "d.example,REJECT .e.example,REJECT", 0, WriteOptions{Format: PostfixAccess, DotSubdomains: true}},
		{"d.example !@d.example", "d.example,DUNNO .d.example,DUNNO", 2, WriteOptions{Format: PostfixAccess}},
		{`d.example !"a,b"@d.example`, "d.example,DUNNO .d.example,DUNNO", 2, WriteOptions{Format: PostfixAccess}},
		{`x@ !"x+a,b"@d.example`, "x@,REJECT d.example,DUNNO .d.example,DUNNO", 1, WriteOptions{Format: PostfixAccess}},
		{"user@d.example user@ <>", "user@d.example,OK user@,OK <>,OK", 0, WriteOptions{Format: PostfixAccess, Allow: true}},
		{"d.example", "d.example,WARN .d.example,WARN", 0, WriteOptions{Format: PostfixAccess, Action: "WARN"}},
		{"!xn--bcher-kva.example u@xn--bcher-kva.example", "xn--bcher-kva.example,DUNNO .xn--bcher-kva.example,DUNNO bücher.example,DUNNO .bücher.example,DUNNO " +
			"u@xn--bcher-kva.example,REJECT u@bücher.example,REJECT", 0, WriteOptions{Format: PostfixAccess}},
		{"d.example x@e.example user@", `/@(.+\.)?d\.example$/i /^x(\+[^@]*)?@e\.example$/i`, 1, WriteOptions{Format: Rspamd}},
		{"example @d.example !a.d.example", `/@example$/i /@d\.example$/i`, 1, WriteOptions{Format: Rspamd}},
		{"d.example !x@d.example", `/@.+\.d\.example$/i`, 1, WriteOptions{Format: Rspamd}},
	} {
		var entries []Entry
		for _, text := range strings.Fields(c.entries) {
			e, err := ParseEntry(strings.ReplaceAll(text, ",", " "), Options{AllowPublicSuffix: true})
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		var b strings.Builder
		left := 0
		if _, err := Write(&b, listOf(entries), c.o, func(Problem) { left++ }); err != nil {
			t.Fatal(err)
		}
		f, _ := newForm(c.o)
		got := strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(b.String(), f.start), "\t", ","), " ", ",")
		if got = strings.Join(strings.Fields(got), " "); got != c.texts || left != c.left {
			t.Errorf("%+v: %s:\ngot  %s, %d left\nwant %s, %d left", c.o, c.entries, got, left, c.texts, c.left)
		}
	}
}

func ExampleWrite() {
	keys := map[string]Entry{
		"example.com":      {Key: "example.com", Kind: sender.KindDomain, Reason: "spam"},
		"user@example.net": {Key: "user@example.net", Kind: sender.KindAddress, Line: 2},
	}
	list := List{
		Entries: maps.Values(keys),
		Lookup: func(key string) (Entry, bool) {
			e, ok := keys[key]
			return e, ok
		},
	}
	n, err := Write(os.Stdout, list, WriteOptions{Format: RBLDNSD}, func(p Problem) { fmt.Fprintln(os.Stdout, "left out:", p) })
	fmt.Println(n, err)
	// Output:
	// left out: line 2: "user@example.net": an rbldnsd dnset cannot express it: it is not about a domain alone
	// # A dnset of rbldnsd.
	// :127.0.0.2:
	// .example.com :127.0.0.2:spam
	// 1 <nil>
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrors(t *testing.T) {
	list := listOf([]Entry{{Key: "example.com", Kind: sender.KindDomain}})
	if _, err := Write(full{}, list, WriteOptions{Format: Plain}, nil); err == nil {
		t.Error("no error from a full disk")
	}
	_, err := Write(full{}, list, WriteOptions{Format: Hosts}, nil)
	if want := `format "hosts" cannot be written; use one of plain, postfix, rbldnsd, rpz, rspamd, json`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
