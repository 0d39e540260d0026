package header

import (
	"fmt"
	"strings"
	"testing"
)

// patterns are repeated to make a section.
var patterns = []string{
	"a", "@", "a@", "a@b", "a@b,", "a@b ", "a@b.c@", ".", "a. ", "a . b@", "a(c)", "(c)@", " ",
	"(", ")", "()", "((", `"`, `""`, `"a`, `\`, `\"`, `\(`, `"\`, "<", ">", "<>", "<a@b", "<a@b>", "<a>a@b",
	"[", "]", "@[", "a@[", "a@[b", "a@[1", "x:", ";", "'a@b'", `"a@b" `, `"a@b",`, `"a"@b,`,
	"=?", "=?a", "=?a?q?", "=?a?q? ", "=?a?b?YQ", "=?a?q?a=40b?=", "=?a?q?a=40b?=,", "=?a?q?a=40b?=@", "=?a?q?a?= ", "=?gbk?q?a=40b?=,",
	"a@=?a?q?b?=@", "\x80", "\x80@", "é@é,", "\u200c@\u200c.a,", "\x00", "a@b\x00", "\r\n a@b,", "\r\nFrom:a@b", "\r\nx", "\r\n:", "\r\n>",
	"'a@b'.c@", "a@b!c@", `"a"b@c"d"`, `a@"b@c",`,
	"a b ", "a%b c ", "(a@(c)b ", "a@b\u00e9 c@@d ", `"\""'<a@b>`,
}

// TestCostlySections reads sections that are made to cost. A reader with quadratic work
// takes a thousand times longer for them.
func TestCostlySections(t *testing.T) {
	const size = 64 << 10
	for _, pattern := range patterns {
		t.Run(pattern, func(t *testing.T) {
			for _, head := range []string{"From: ", "From: Foo <", `From: "`, "From: =?a?q?", ""} {
				section := head + strings.Repeat(pattern, size/len(pattern))
				checkSize(t, section, Senders([]byte(section), asked))
			}
		})
	}
}

// checkSize checks that the addresses are at most a few times as long as the section.
func checkSize(t *testing.T, section string, r Result) {
	t.Helper()
	total := 0
	for _, s := range r.Senders {
		total += len(s.Address)
	}
	if total > maxGrowth*len(section) {
		t.Errorf("%d bytes of addresses from %d bytes", total, len(section))
	}
}

// TestEveryAddressOfALongHeader wants the last address of a long list to be found like the
// first.
func TestEveryAddressOfALongHeader(t *testing.T) {
	const n = 20_000
	many := make([]string, n)
	for i := range many {
		many[i] = fmt.Sprintf("u%d@h.example", i)
	}
	for name, section := range map[string]string{
		"one field":      "From: " + strings.Join(many, ",\r\n "),
		"a broken field": "From: \"x, <, (, " + strings.Join(many, "; "),
		"fields":         "From: " + strings.Join(many, "\r\nFrom: "),
		"no separators":  "From: " + strings.Join(many, " "),
	} {
		t.Run(name, func(t *testing.T) {
			found := make(map[string]bool, n)
			for _, s := range Senders([]byte(section), asked).Senders {
				found[s.Address] = true
			}
			for _, a := range many {
				if !found[a] {
					t.Fatalf("%s is missing among %d", a, len(found))
				}
			}
		})
	}
}

func TestManyFields(t *testing.T) {
	section := strings.Repeat("X-Filler: "+strings.Repeat("x", 40)+"\r\n", 10_000) + "From: a@b.example\r\n" +
		strings.Repeat("Sender:\r\n", 10_000) + "From: " + strings.Repeat("x", 1<<20) + " <c@d.example>\r\n"
	r := Senders([]byte(section), asked)
	if got := fmt.Sprint(show(r)); got != "[From a@b.example From c@d.example Sender (empty)]" {
		t.Error(got)
	}
}
