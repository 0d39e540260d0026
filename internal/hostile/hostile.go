// Package hostile makes header sections that are expensive to read, for tests and
// benchmarks.
package hostile

import (
	"strconv"
	"strings"
)

// A Family describes expensive header sections: Head, then Unit as often as fits, then
// Tail. In each Unit "%d" becomes its number, in base 36.
type Family struct {
	Name string

	// Why says which part of a reader it attacks.
	Why string

	Head, Unit, Tail string
}

// Section returns a header section of the family of at most size bytes, without the
// empty line after it.
func (f Family) Section(size int) []byte {
	b := append(make([]byte, 0, size+len(f.Unit)), f.Head...)
	for i := 0; ; i++ {
		before := len(b)
		b = append(b, strings.ReplaceAll(f.Unit, "%d", strconv.FormatInt(int64(i), 36))...)
		if len(b)+len(f.Tail) > size {
			b = b[:before]
			break
		}
	}
	return append(b, f.Tail...)
}

// Families holds all families.
var Families = []Family{
	{"rows of at signs", "each is an address, and the row is one", `From: \"`, `0"@1"@2"@`, ""},
	{"addresses", "as many as possible", "From: ", "a@b,", ""},
	{"distinct addresses", "each is kept", "From: ", "a%d@b.example,", ""},
	{"a thousand addresses", "each is judged", "From: ", "a%d@" + strings.Repeat("b.", 120) + "example,          ", ""},
	{"a thousand with nonsense", "each parent was parsed again", "From: ", "a%d@*." + strings.Repeat("b.", 120) + "example,          ", ""},
	{"a thousand labels that are none", "each parent was parsed again", "From: ", "a%d@" + strings.Repeat("*.", 120) + "example,          ", ""},
	{"a thousand non-ASCII domains", "IDNA", "From: ", "a%d@" + strings.Repeat("中文é.", 28) + "example,          ", ""},
	{"long non-ASCII labels, distinct", "Punycode", "From: ", "a%d@" + strings.Repeat("文字化け漢字仮名", 10) + ".example,          ", ""},
	{"longest non-ASCII labels, distinct", "Punycode", "From: ", "a%d@" + strings.Repeat("文字化け漢字仮名é", 35) + ".example,", ""},
	{"non-ASCII local parts", "folding", "From: ", "É\u0301%d" + strings.Repeat("\u0301\u0323É", 42) + "@example.org,", ""},
	{"a thousand hosts", "each is completed", "From: ", "a@b%d," + strings.Repeat(" ", 290), ""},
	{"a hundred words", "each is completed", "From: ", strings.Repeat("x", 2500) + "%d ", ""},
	{"a hundred non-ASCII words", "each is folded with each domain", "From: ", strings.Repeat("x", 300) + "É" + strings.Repeat("x", 2200) + "%d ", ""},
	{"a thousand routes in our domain", "each leads further", "From: ", "a%d%x%y%z%example.org%example.net@example.org," + strings.Repeat(" ", 220), ""},
	{"a thousand long tags", "keys", "From: ", strings.Repeat("+x", 130) + "%d@example.org,", ""},
	{"charsets", "looking for each", "From: ", "=?x%d?q?a=40b?=,", ""},
	{"labels that are none", "each parent was parsed again", "From: a@", "*.", "listed.example"},
	{"85 labels, many addresses", "the same, often", "From: ", "a@" + strings.Repeat("*.", 85) + "b,", ""},
	{"non-ASCII labels", "IDNA", "From: ", "a@" + strings.Repeat("中文.", 40) + "example,", ""},
	{"long non-ASCII labels", "Punycode's cost grows with the square", "From: ", "a@" + strings.Repeat("文字化け漢字仮名", 30) + ".example,", ""},
	{"one long domain", "length", "From: a@", "b.", "example"},
	{"one long local part", "length, and hashing it", "From: ", "a", "@b.example"},
	{"one long non-ASCII local part", "case folding and normalisation", "From: ", "É\u0301", "@b.example"},
	{"combining marks", "normalisation sorts them", "From: a", "\u0301\u0323", "@b.example"},
	{"encoded-words", "decoding", "From: ", "=?utf-8?q?a=40b?= ", ""},
	{"encoded-words in unknown charsets", "looking for the charset", "From: ", "=?x?q?a?=", "@b"},
	{"encoded-words in a foreign charset", "a decoder for each", "From: ", "=?gbk?q?a=40b?=,", ""},
	{"encoded-words without an end", "looking for it", "From: a@b ", "=?a?q?", ""},
	{"encoded-words in addresses", "each is decoded in each reading", "From: ", "=?a?q?a=40b?=@", ""},
	{"quoted strings", "each is a word", "From: ", `"a"b@c"d"`, ""},
	{"open quotes", "read once more", `From: "`, "a@b c@d ", ""},
	{"comments", "nesting", "From: ", "(", "a@b"},
	{"comments and words", "gaps", "From: ", "a(c)", "@b"},
	{"nested brackets", "a member that is unclear", "From: ", "<a@b", ""},
	{"groups", "members", "From: ", "a:b@c;", ""},
	{"words", "each is a local part to servers", "From: ", "a ", ""},
	{"words with dots", "one word, and its parts", "From: ", "a . ", "@b"},
	{"percent signs", "a route", "From: ", "a%", ""},
	{"exclamation marks", "a route", "From: ", "a!", ""},
	{"routes in our domain", "each leads further", "From: ", "a%b%c@example.org,", ""},
	{"hosts without a domain", "each is completed", "From: ", "a@b ", ""},
	{"invisible characters", "dropped", "From: a@b", "\u200c\u00ad", ".example"},
	{"Windows-1252", "decoding", "From: ", "\x80@\x81,", ""},
	{"fields", "each is looked at", "", "From: a@b.example\r\n", ""},
	{"empty fields", "each is looked at", "", "From:\r\n", ""},
	{"lines without a colon", "each is one more value", "From: a@b\r\n", "x\r\n", ""},
	{"folds", "unfolding", "From: a@b", "\r\n ", "c"},
	{"literals", "brackets", "From: ", "a@[1", ""},
	{"invisible characters in a route", "dropped before the cut", "From: a%b", "\u200b\u00ad", ".example@example.org"},
	{"invisible characters in words", "dropped before the cut", "From: ", strings.Repeat("\u200b", 400) + " a%d@b" + strings.Repeat("\u200b", 400) + ",", ""},
	{"one long route", "each reading is long", "From: a", "%b!", "@example.org"},
	{"long routes", "each reading is long", "From: ", strings.Repeat("a%b!", 2000) + "%d@example.org, ", ""},
	{"odd characters behind a domain", "the domain up to them counts", "From: a@b.example", "/x", ""},
	{"encoded names in gb18030", "a parser that decodes them", "", "From: " + strings.Repeat("=?gb18030?q?abc?= ", 220) + "<a@b.example>\r\n", ""},
	{"encoded names in UTF-8", "a parser that decodes them", "", "From: " + strings.Repeat("=?utf-8?q?abc?= ", 240) + "<a@b.example>\r\n", ""},
	{"encoded names before nothing", "parsed in vain, then scanned", "", "From: " + strings.Repeat("=?iso-8859-1?b?YWJj?= ", 180) + "<a@b.example> x\r\n", ""},
	{"quoted names", "a parser that copies them", "", `From: "` + strings.Repeat(`\x`, 2000) + "\" <a@b.example>\r\n", ""},
	{"long clean names", "a parser that joins words", "", "From: " + strings.Repeat("a ", 2000) + "<a@b.example>\r\n", ""},
	{"non-ASCII local parts at nonsense", "folded, and once more for the parent", "From: ", `"N%d` + strings.Repeat("ÅÄ", 100) + `"@*.x.example, `, ""},
	{"combining marks at nonsense", "normalised, and once more for the parent", "From: ", `"%da` + strings.Repeat("\u0327\u0301", 60) + `"@*.x.example, `, ""},
	{"unknown charsets, distinct", "looking for each", "From: ", "=?x%d?q?=20?= ", ""},
}
