package listfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"spamgate/blocklist/sender"
)

// writeAll writes entries and reads them again.
func writeAll(t *testing.T, f Format, entries []Entry) (text string, left []Problem, back found) {
	t.Helper()
	var b bytes.Buffer
	written, err := Write(&b, f, slices.Values(entries), func(p Problem) { left = append(left, p) })
	if err != nil {
		t.Fatal(err)
	}
	if written+len(left) != len(entries) {
		t.Errorf("%s: %d written and %d left of %d", f, written, len(left), len(entries))
	}
	back = readOnce(bytes.NewReader(b.Bytes()), Options{Format: f, AllowPublicSuffix: true, Now: 1})
	if back.err != nil || len(back.problems) > 0 || len(back.entries) != written {
		t.Errorf("%s: %d written, read as %d, %v, %v\n%s", f, written, len(back.entries), back.problems, back.err, b.String())
	}
	return b.String(), left, back
}

// TestWrite writes every entry of every sample in every format: what is not
// reported comes back the same.
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
	entries = firstOfKeys(entries)
	for _, f := range Writable {
		_, left, back := writeAll(t, f, entries)
		checkBack(t, f, entries, left, back.entries)
		for _, p := range left {
			if f == Plain && !strings.Contains(p.What, errNoDefer.Error()) {
				t.Error(p)
			}
		}
	}
}

// firstOfKeys returns the first of the entries with each key.
func firstOfKeys(entries []Entry) []Entry {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool {
		again := seen[e.Key]
		seen[e.Key] = true
		return again
	})
}

// checkBack compares what was read with what was written, without what was
// left.
func checkBack(t *testing.T, f Format, entries []Entry, left []Problem, back []Entry) {
	t.Helper()
	i := 0
	for _, e := range entries {
		if len(left) > 0 && left[0].Text == clip(AsEntry(e)) && left[0].Line == e.Line {
			left = left[1:]
			continue
		}
		if i == len(back) {
			t.Errorf("%s: lacks %s", f, describe(e))
			return
		}
		got := back[i]
		i++
		if got.Key != e.Key || got.Kind != e.Kind || got.Exception != e.Exception || got.Until != e.Until || got.Defer != e.Defer {
			t.Errorf("%s: wrote %s, read %s", f, describe(e), describe(got))
			return
		}
	}
}

// TestWriteLineEnds: a reason or note is never more than its line.
func TestWriteLineEnds(t *testing.T) {
	for _, text := range []string{"a\nb.example.com", "a\r\n# b", "\n", "a\vb\x00c", "a\xffb", "a\u0085b"} {
		for _, f := range Writable {
			e := Entry{Key: "a.example.com", Kind: sender.KindDomain, Reason: text, Note: text}
			written, left, _ := writeAll(t, f, []Entry{e})
			if len(left) > 0 || strings.ContainsAny(written, "\r\v\x00") || !utf8.ValidString(written) || strings.Contains(written, "\nb") {
				t.Errorf("%s, %q: %q, %v", f, text, written, left)
			}
		}
	}
}

// TestWriteZonePairs: a domain alone and its subdomains alone, side by side, stay
// two entries in a zone, where a domain with its subdomains is two records.
func TestWriteZonePairs(t *testing.T) {
	alone := Entry{Key: "@example.com", Kind: sender.KindAtDomain, Line: 1}
	below := Entry{Key: "*.example.com", Kind: sender.KindSubdomains, Line: 2}
	both := Entry{Key: "example.com", Kind: sender.KindDomain, Line: 3}
	for _, entries := range [][]Entry{{alone, below}, {both, below}, {alone, both}, {both, alone, below, both}} {
		_, left, back := writeAll(t, RPZ, entries)
		checkBack(t, RPZ, entries, left, back.entries)
	}
}

// TestWriteRandom is TestWrite with entries that are odd in every way.
func TestWriteRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	locals := []string{"user", "a+b", "#a", "!a", "a*", `"a b"`, `"a#"`, `"a\"b"`, "é", "/x/", "if", "$ttl", "@", "$", ":a", ";a", "user.name", "blocklist_from", "||x", "0.0.0.0"}
	domains := []string{"example.com", "sub.example.com", "bounce_1.example", "com", "$ttl.example", "xn--bcher-kva.example", "a.example", "[192.0.2.1]", "[ipv6:2001:db8::1]", "if.example", "a+b.example", "rpz-ip.example", "example.rpz-ip", "192.0.2.1", "%.example", "{x}.example"}
	texts := []string{"", "", "spam", "a # b", "a ## b", "# x", "until=x", "until=2030-01-01", "5.7.1 x", "$name costs $1", ":2:x", "; x", "a  b", "é☃", `"x"`, "REJECT x", "\\", "(", ")"}
	var entries []Entry
	for line := range 3000 {
		text := pick("", "", "", ".", "*.", "@", "user@") + pick(domains...)
		if random.IntN(3) == 0 {
			text = pick(locals...) + "@" + pick(append(domains, "")...)
		}
		if random.IntN(5) == 0 {
			text = "!" + text
		}
		e, err := ParseEntry(text, Options{AllowPublicSuffix: true})
		if err != nil {
			continue
		}
		e.Line, e.Reason, e.Note = line+1, pick(texts...), pick(texts...)
		if random.IntN(10) == 0 {
			e.Until = 1 + random.Int64N(1<<33)
		}
		e.Defer = random.IntN(10) == 0
		entries = append(entries, e)
	}
	if entries = firstOfKeys(entries); len(entries) < 200 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, f := range Writable {
		_, left, back := writeAll(t, f, entries)
		checkBack(t, f, entries, left, back.entries)
		t.Logf("%s: %d of %d left", f, len(left), len(entries))
	}
}

func ExampleWrite() {
	entries := []Entry{
		{Key: "example.com", Kind: sender.KindDomain, Reason: "spam"},
		{Key: "user@example.net", Kind: sender.KindAddress, Line: 2},
	}
	n, err := Write(os.Stdout, RBLDNSD, slices.Values(entries), func(p Problem) { fmt.Println(p) })
	fmt.Println(n, err)
	// Output:
	// line 2: "user@example.net": an rbldnsd dnset cannot express it: it is not about a domain alone
	// # A dnset of rbldnsd.
	// :127.0.0.2:
	// .example.com :127.0.0.2:spam
	// 1 <nil>
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrors(t *testing.T) {
	entries := slices.Values([]Entry{{Key: "example.com", Kind: sender.KindDomain}})
	if _, err := Write(full{}, Plain, entries, nil); err == nil {
		t.Error("no error from a full disk")
	}
	_, err := Write(full{}, Hosts, entries, nil)
	if want := `format "hosts" cannot be written; use one of plain, postfix, rbldnsd, rpz, json`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
