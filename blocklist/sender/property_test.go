package sender

import (
	"math/rand"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/idna"
)

func strictLookup(d string) (string, error) { return idna.Lookup.ToASCII(d) }

// asciiDomains returns n pseudo-random ASCII domains, many with labels that
// start with xn--, some of them valid A-labels.
func asciiDomains(n int) []string {
	rng := rand.New(rand.NewSource(1))
	labels := []string{"xn--bcher-kva", "XN--FA-hia", "xn--", "xn--a", "xn--r8jz45g", "a--b", "-a", "a-", "Example", "COM", "a_b"}
	const letters = "abcXYZ019-"
	out := make([]string, n)
	for i := range out {
		var parts []string
		for range 1 + rng.Intn(4) {
			if rng.Intn(3) == 0 {
				parts = append(parts, labels[rng.Intn(len(labels))])
				continue
			}
			b := make([]byte, 1+rng.Intn(8))
			for j := range b {
				b[j] = letters[rng.Intn(len(letters))]
			}
			prefix := ""
			if rng.Intn(2) == 0 {
				prefix = "xn--"
			}
			parts = append(parts, prefix+string(b))
		}
		out[i] = strings.Join(parts, ".")
	}
	return out
}

// lastAssigned is beyond every character that case or NFC change; the planes
// above hold none.
const lastAssigned = 0x2FFFF

// TestFoldIsIdempotent tries every character alone, and every one that has
// case, and every mark, beside combining marks of each behaviour.
func TestFoldIsIdempotent(t *testing.T) {
	check := func(s string) {
		if once := fold(s); fold(once) != once {
			t.Errorf("fold(%+q) = %+q, then %+q", s, once, fold(once))
		}
	}
	marks := []rune{0x301, 0x307, 0x308, 0x323, 0x328, 0x338, 0x342, 0x345, 0x3099, 0x1160, 0x11A8}
	for r := rune(0); r <= lastAssigned; r++ {
		if unicode.Is(unicode.Cs, r) {
			continue
		}
		check(string(r))
		if unicode.SimpleFold(r) == r && !unicode.Is(unicode.M, r) {
			continue
		}
		for _, m := range marks {
			check(string([]rune{r, m}))
			check(string([]rune{m, r}))
			check(string([]rune{r, m, 0x345}))
			check(string([]rune{r, 0x345, m}))
		}
	}
}

// TestFoldJoinsSpellings: upper, lower and title case of a character, and its
// decomposed form, all have one normal form.
func TestFoldJoinsSpellings(t *testing.T) {
	for r := rune(0x80); r <= lastAssigned; r++ {
		for f := unicode.SimpleFold(r); f > r; f = unicode.SimpleFold(f) {
			if a, b := fold(string(r)), fold(string(f)); a != b {
				t.Errorf("fold(%U) = %+q, fold(%U) = %+q", r, a, f, b)
			}
		}
	}
}

// pieces make up the random addresses of TestParseProperties: what has a
// meaning somewhere in the grammar, or changes under normalisation.
var pieces = []string{"a", "B", "user", ".", "..", "@", "@", "+", `"`, `\`, "<", ">", " ", "[", "]", "IPv6:", "2001:db8::1",
	"192.0.2.1", "example", ".com", "xn--", "xn--bcher-kva", "bücher", "ß", "ﬀ", "İ", "ͅ", "̸", "̈", "。", "．", "Ａ", "\u200d", "\u00ad",
	"*", "_", "-", ",", "(", "\u037e", "\u2100", "\uff20", "\u2024", "\ufffd", "א", "\xff", "\x00", "\r"}

func TestParseProperties(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	parsed := 0
	for range 40000 {
		var b strings.Builder
		for range 1 + rng.Intn(5) {
			b.WriteString(pieces[rng.Intn(len(pieces))])
		}
		if rng.Intn(2) == 0 {
			b.WriteString("@")
			for range 1 + rng.Intn(4) {
				b.WriteString(pieces[rng.Intn(len(pieces))])
			}
		}
		checkAny(t, b.String(), &parsed)
	}
	if parsed < 2000 {
		t.Errorf("only %d of the random addresses parse: the test tests little", parsed)
	}
}

// checkAny holds what is true of any input.
func checkAny(t *testing.T, s string, parsed *int) {
	t.Helper()
	a, err := Parse(s)
	if err != nil {
		if a != (Address{}) || err.Error() == "" || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("Parse(%q) = %q, %q", s, a, err)
		}
		return
	}
	*parsed++
	checkFixedPoint(t, a)
	if b, err := Parse(" <" + s + "> "); err == nil && !strings.HasPrefix(strings.TrimLeft(s, " \t"), "<") && b != a {
		t.Errorf("Parse(%q) = %q, in brackets %q", s, a, b)
	}
	checkWalk(t, a)
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"normal.tsv", "malformed.tsv", "walk.tsv"} {
		for _, c := range rows(f, file) {
			f.Add(c[0])
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		var parsed int
		checkAny(t, s, &parsed)
	})
}
