package header

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// seenIn reports whether the sender spam@listed.example is found in a From field that has only
// these bytes as an encoded-word, as an address or as a guess.
func seenIn(charset string, text []byte) bool {
	word := "From: =?" + charset + "?b?" + base64.StdEncoding.EncodeToString(text) + "?=\r\n"
	for _, line := range show(SendersUpTo([]byte(word), asked, 1000)) {
		if line == "From spam@listed.example" || line == "From (form) spam@listed.example" {
			return true
		}
	}
	return false
}

// charsetNames reads testdata/charsets.tsv: names of charsets, and the bytes of
// spam@listed.example in those that Python knows.
func charsetNames(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/charsets.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := map[string][]byte{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, text, ok := strings.Cut(lines.Text(), "\t"); ok && name[0] != '#' {
			if names[name], err = hex.DecodeString(text); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// TestCharsets wants an address to be found in an encoded-word in each charset, written in that
// charset as Python and golang.org/x/text encode it, and written in ASCII.
func TestCharsets(t *testing.T) {
	const address = "spam@listed.example"
	names := charsetNames(t)
	if len(names) < 1000 {
		t.Fatalf("%d names: the file was not read", len(names))
	}
	encoded := 0
	for name, text := range names {
		if !seenIn(name, []byte(address)) {
			t.Errorf("%s: ASCII is not found", name)
		}
		if len(text) > 0 && !seenIn(name, text) {
			t.Errorf("%s: % x is not found", name, text)
		}
		e, err := ianaindex.MIME.Encoding(name)
		if err != nil || e == nil {
			e, err = htmlindex.Get(name)
		}
		if err != nil || e == nil {
			continue
		}
		text, err = e.NewEncoder().Bytes([]byte(address))
		if back, _ := e.NewDecoder().Bytes(text); err != nil || string(back) != address {
			continue // it has no ASCII
		}
		if encoded++; !seenIn(name, text) {
			t.Errorf("%s: % x is not found", name, text)
		}
	}
	if encoded < 300 {
		t.Errorf("only %d names were encoded", encoded)
	}
}

// TestUnreadable wants text that cannot be decoded to be told if a field has nothing else.
func TestUnreadable(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"=?x-unknown?b?gYKD?=", "[{From =?x-unknown?b?gYKD?=}]"},
		{"Ann =?x-unknown?b?gYKD?= =?x-other?b?gYKD?=", "[{From =?x-unknown?b?gYKD?=}]"},
		{"=?utf-8?b?gYKD?=", "[{From =?utf-8?b?gYKD?=}]"},
		{"=?big5?b?gIGC?=", "[{From =?big5?b?gIGC?=}]"},
		{"=?x-unknown?b?gYKD?= <a@b.example>", "[]"},
		{"=?x-unknown?q?Ann?=", "[]"},
		{"=?utf-8?q?J=C3=BCrgen?=", "[]"},
	} {
		if got := fmt.Sprint(Senders([]byte("From: "+c.value), asked).Unreadable); got != c.want {
			t.Errorf("%q: %s, want %s", c.value, got, c.want)
		}
	}
}

// TestLongRoutes wants a long source route not to hide the domain at its end: the section is
// too complex.
func TestLongRoutes(t *testing.T) {
	for n, tooMany := range map[int]bool{1: false, maxRoute: false, maxRoute + 1: true, 1000: true} {
		route := strings.Repeat("@ok.example,", n-1) + "@listed.example"
		r := SendersUpTo([]byte("From: <"+route+":spam>"), asked, 1000)
		found := strings.Contains(fmt.Sprint(show(r)), "spam@listed.example")
		if r.TooMany != tooMany || found == tooMany {
			t.Errorf("%d domains: too many: %t, found: %t", n, r.TooMany, found)
		}
	}
}

// TestCutMembers wants an address that Sendmail cuts inside its domain to be found, where it cuts
// and nowhere else.
func TestCutMembers(t *testing.T) {
	for _, name := range []string{"", "Ann, ann@ok.example, ", "\"a,b\" <c@ok.example>, "} {
		for n := range 400 {
			value := name + strings.Repeat("x", n) + " <spam@listed.examplexyz.ok.example>"
			cut := n + len(" <spam@listed.example")
			got := strings.Contains(strings.Join(show(Senders([]byte("From: "+value), asked)), "\n"), "spam@listed.example\n")
			if want := cut >= cutFrom-1 && cut < cutTo-1; got != want && (cut < cutFrom-2 || cut > cutFrom+2) && (cut < cutTo-3 || cut > cutTo+2) {
				t.Errorf("%q, %d bytes before the cut: found: %t", name, cut, got)
			}
		}
	}
}

// TestTwoCharsets wants a word in a charset without ASCII to be read raw, too, whatever follows.
func TestTwoCharsets(t *testing.T) {
	lines := show(Senders([]byte("From: =?utf-16?q?spam=40listed.example?=, =?iso-8859-1?q?J=FCrgen?= <ok@ok.example>"), asked))
	if !strings.Contains(fmt.Sprint(lines), "spam@listed.example") {
		t.Errorf("%q", lines)
	}
}

// TestRoutesOfLocalParts reads percent signs and bangs from both ends.
func TestRoutesOfLocalParts(t *testing.T) {
	for address, want := range map[string]string{
		"user%a.example%b.example@c.example": `[user%a.example@b.example user@a.example]`,
		"a.example!b.example!user@c.example": `[b.example!user@a.example user@b.example]`,
	} {
		if got := fmt.Sprint(Routes(address)); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
