package sender

import (
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/text"
)

var hexByte = regexp.MustCompile(`\{[0-9a-f]{2}\}`)

// rows reads a testdata file: two columns a line, # comments, {hh} a byte.
func rows(t testing.TB, file string) [][2]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][2]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		in, want, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("%s: no tab in %q", file, line)
		}
		in = hexByte.ReplaceAllStringFunc(in, func(h string) string {
			b, _ := hex.DecodeString(h[1:3])
			return string(b)
		})
		out = append(out, [2]string{in, want})
	}
	return out
}

func TestParseNormal(t *testing.T) {
	for _, c := range rows(t, "normal.tsv") {
		a, err := Parse(c[0])
		if err != nil {
			t.Errorf("Parse(%q): %v", c[0], err)
			continue
		}
		if a.String() != c[1] {
			t.Errorf("Parse(%q) = %q, want %q", c[0], a, c[1])
		}
		checkFixedPoint(t, a)
	}
}

// checkFixedPoint holds what every parsed address must keep.
func checkFixedPoint(t *testing.T, a Address) {
	t.Helper()
	again, err := Parse(a.String())
	if err != nil || again != a {
		t.Errorf("Parse(%q) = %q, %v: not a fixed point", a, again, err)
	}
	if a.IsNull() {
		if a.Local() != "" || a.Domain() != "" || a != (Address{}) {
			t.Errorf("null sender with content: %q", a.text)
		}
		return
	}
	if got := a.Local() + "@" + a.Domain(); got != a.String() {
		t.Errorf("Local and Domain of %q make %q", a, got)
	}
	if d, err := NormalizeDomain(a.Domain()); err != nil || d != a.Domain() {
		t.Errorf("NormalizeDomain(%q) = %q, %v", a.Domain(), d, err)
	}
	if l, err := NormalizeLocal(a.Local()); err != nil || l != a.Local() {
		t.Errorf("NormalizeLocal(%q) = %q, %v", a.Local(), l, err)
	}
	if !text.IsASCII(a.Domain()) || len(a.Domain()) > MaxDomain {
		t.Errorf("domain %q is not a short ASCII name", a.Domain())
	}
}

func TestParseMalformed(t *testing.T) {
	for _, c := range rows(t, "malformed.tsv") {
		a, err := Parse(c[0])
		if err == nil {
			t.Errorf("Parse(%q) = %q, want error %q", c[0], a, c[1])
			continue
		}
		if err.Error() != c[1] {
			t.Errorf("Parse(%q): error %q, want %q", c[0], err, c[1])
		}
		if got, want := errors.Is(err, ErrNoDomain), strings.HasPrefix(c[1], "no domain"); got != want {
			t.Errorf("Parse(%q): errors.Is(err, ErrNoDomain) = %v", c[0], got)
		}
		if a != (Address{}) {
			t.Errorf("Parse(%q) returns %q beside its error", c[0], a)
		}
	}
}

func TestDomainLength(t *testing.T) {
	label := strings.Repeat("a", 63) + "."
	longest := strings.Repeat(label, 3) + strings.Repeat("a", MaxDomain-3*64)
	for _, c := range []struct {
		name, domain string
		ok           bool
	}{
		{"longest", longest, true},
		{"longest and a dot", longest + ".", true},
		{"one more", longest + "a", false},
		{"upper case, one more", strings.ToUpper(longest) + "A", false},
		{"128 labels", strings.Repeat("a.", 127) + "a", true},
		{"longer once in ASCII", strings.Repeat("ü", 120) + "." + longest[100:], false},
		{"a mebibyte of Unicode", strings.Repeat("ü", 1<<19), false},
	} {
		if _, err := Parse("user@" + c.domain); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestIsLiteral(t *testing.T) {
	for in, want := range map[string]bool{
		"":                  false,
		"a@example.com":     false,
		"a@192.0.2.1":       false,
		`"[a]"@example.com`: false,
		"a@[192.0.2.1]":     true,
	} {
		a, err := Parse(in)
		if err != nil || a.IsLiteral() != want {
			t.Errorf("Parse(%q).IsLiteral() = %v, %v", in, a.IsLiteral(), err)
		}
	}
}

func TestNormalizeAlone(t *testing.T) {
	for _, c := range []struct {
		f        func(string) (string, error)
		in, want string
	}{
		{NormalizeLocal, "User", "user"},
		{NormalizeLocal, `"a b"`, `"a b"`},
		{NormalizeLocal, `"a"`, "a"},
		{NormalizeLocal, "", ""},
		{NormalizeLocal, "a b", ""},
		{NormalizeLocal, "a\x00", ""},
		{NormalizeLocal, `"a`, ""},
		{NormalizeLocal, `"a\`, ""},
		{NormalizeDomain, "Example.COM.", "example.com"},
		{NormalizeDomain, "[IPv6:2001:DB8::1]", "[ipv6:2001:db8::1]"},
		{NormalizeDomain, "", ""},
		{NormalizeDomain, "a\xff", ""},
		{NormalizeDomain, "a b", ""},
	} {
		got, err := c.f(c.in)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

// TestASCIIAgreesWithIDNA holds the claim that IDNA need not be asked about an
// ASCII domain: whatever it accepts, it only lower-cases.
func TestASCIIAgreesWithIDNA(t *testing.T) {
	for _, d := range asciiDomains(20000) {
		strict, err := strictLookup(d)
		if err != nil || slices.Contains(strings.Split(strict, "."), "") {
			continue // the library takes the label "xn--" for an empty one
		}
		if got, err := NormalizeDomain(d); err != nil || got != strict {
			t.Errorf("NormalizeDomain(%q) = %q, %v; IDNA says %q", d, got, err, strict)
		}
	}
}
