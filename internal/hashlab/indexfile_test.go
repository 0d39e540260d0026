package hashlab

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/hashfamily"
)

// numbersOf returns the lines of a family for keys: whole hashes in several forms.
func numbersOf(keys []string, k int) string {
	f := newXXH3(1<<32, k)
	var text strings.Builder
	for n, key := range keys {
		for i := range k {
			if i > 0 {
				text.WriteString([]string{" ", ",", "\t", ", "}[n%4])
			}
			fmt.Fprintf(&text, []string{"%d", "%#x"}[n%2], f.Index(i, []byte(key)))
		}
		text.WriteString([]string{"\n", "\r\n"}[n%3%2])
	}
	return text.String()
}

func someKeys(n int) []string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("user%d@example.com", i))
	}
	return keys
}

// TestReadIndices: the family of a file is the one that wrote it, also where keys
// are equal.
func TestReadIndices(t *testing.T) {
	keys := someKeys(MinKeys)
	keys = append(keys, keys[3], "last", keys[3])
	c, x, err := ReadIndices("keys", strings.NewReader(strings.Join(keys, "\n")), "mine", strings.NewReader(numbersOf(keys, 3)))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Keys) != MinKeys+1 || c.Duplicates != 2 {
		t.Errorf("%d keys, %d duplicates", len(c.Keys), c.Duplicates)
	}
	own := x.Family()
	if own.Name != "mine" || own.K != 3 || !own.Fixed || x.Largest() < 1<<31 {
		t.Errorf("%+v, largest %d", own, x.Largest())
	}
	f, _ := own.New(1 << 20)
	want := newXXH3(1<<20, 3)
	for _, key := range c.Keys {
		if got, want := fmt.Sprint(f.AppendIndices(nil, key), f.Index(2, key)), fmt.Sprint(want.AppendIndices(nil, key), want.Index(2, key)); got != want {
			t.Fatalf("%s: %s, want %s", key, got, want)
		}
	}
}

func TestReadIndicesRefuses(t *testing.T) {
	keys := someKeys(MinKeys)
	good := strings.Split(strings.TrimSuffix(strings.ReplaceAll(numbersOf(keys, 2), "\r", ""), "\n"), "\n")
	with := func(line int, text string) string {
		lines := append([]string(nil), good...)
		lines[line-1] = text
		return strings.Join(lines, "\n") + "\n"
	}
	for _, tt := range []struct{ name, keys, numbers, says string }{
		{"no number", "", with(17, "1 abc"), `mine: line 17: "abc" is not a whole number: give numbers from 0`},
		{"a negative one", "", with(17, "1 -2"), `line 17: "-2" is not a whole number`},
		{"a fraction", "", with(17, "1 2.5"), `line 17: "2.5" is not a whole number`},
		{"too large", "", with(2, "1 18446744073709551616"), `line 2: "18446744073709551616" is too large`},
		{"an empty line", "", with(9, ""), "line 9: has 0 numbers: give 1 to 64"},
		{"too many", "", with(1, strings.Repeat("1 ", 65)), "line 1: has 65 numbers: give 1 to 64"},
		{"another count", "", with(30, "1 2 3"), "line 30: has 3 numbers, line 1 has 2"},
		{"a line too few", "", strings.Join(good[:MinKeys-1], "\n"), "mine ends after line 999, but keys has 1000 lines"},
		{"a line too many", "", strings.Join(good, "\n") + "\n1 2\n", "line 1001: keys has only 1000 lines"},
		{"nothing", "", "", "mine ends after line 0"},
		{"not a function", strings.Join(keys, "\n") + "\n" + keys[4] + "\n", strings.Join(good, "\n") + "\n1 2\n", "line 1001: number 1 is 1, but "},
		{"few keys", "a\nb\n", "1\n2\n", "too few"},
		{"a long line", "", with(5, strings.Repeat("1", MaxKeyBytes+1)), "line 5: longer than"},
	} {
		if tt.keys == "" {
			tt.keys = strings.Join(keys, "\n") + "\n"
		}
		if _, _, err := ReadIndices("keys", strings.NewReader(tt.keys), "mine", strings.NewReader(tt.numbers)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

// TestRunOwn: a family of numbers and a hash of the caller's are measured beside the
// others: good ones like the controls, bad ones found.
func TestRunOwn(t *testing.T) {
	keys := someKeys(8000)
	var numbers strings.Builder
	for _, key := range keys {
		h := hashfamily.AP([]byte(key))
		fmt.Fprintf(&numbers, "%d %d %d\n", h, h, h) // three times the same
	}
	c, x, err := ReadIndices("keys", strings.NewReader(strings.Join(keys, "\n")), "thrice", strings.NewReader(numbers.String()))
	if err != nil {
		t.Fatal(err)
	}
	constant := Hash{"constant", 32, func([]byte) uint64 { return 7 }}
	r := untilSpeed(t, Options{Families: []string{"classic:RS,JS,AP"}, Own: []Family{x.Family()}, Hashes: []Hash{constant}, Corpora: []*Corpus{c}, Seed: 1})
	for _, f := range r.FPR {
		switch {
		case f.Load != 1:
		case f.Name == "thrice" && (f.K != 3 || f.EffectiveK.Value > 1.3 || f.Fill > 0.3):
			t.Errorf("thrice the same: %+v", f)
		case f.Name == "double" && f.K != 3:
			t.Errorf("no double hashing to compare with: %+v", f)
		case f.Name == "constant" && f.Rate.Value != 1:
			t.Errorf("a constant: %+v", f)
		}
	}
	row(t, r.Avalanche, func(a Avalanche) bool { return a.Name == "constant" && a.Never == 1 })
	row(t, r.FPR, func(f FPRRow) bool { return f.Name == "thrice" && f.Load == 1 })
	row(t, r.FPR, func(f FPRRow) bool { return f.Name == "constant" && f.Load == 1 })
	a := row(t, r.Agreement, func(a Agreement) bool { return a.Family == "thrice" })
	if a.Same[0][2] != 1 {
		t.Errorf("agreement %v", a.Same)
	}
	for _, m := range r.Messages {
		if m.Name == "thrice" {
			t.Errorf("a rate per message of a family that cannot have one: %+v", m)
		}
	}
}

// TestOtherHashes compares the hashes of the standard library with its own.
func TestOtherHashes(t *testing.T) {
	for _, tt := range []struct {
		name, key string
		want      uint64
	}{{"FNV-1a", "", 0x811c9dc5}, {"FNV-1a", "foobar", 0xbf9cf968}, {"CRC32C", "123456789", 0xe3069283}} {
		h := row(t, OtherHashes(), func(h Hash) bool { return h.Name == tt.name })
		if got := h.Sum([]byte(tt.key)); got != tt.want {
			t.Errorf("%s of %q: %#x, want %#x", tt.name, tt.key, got, tt.want)
		}
	}
	r := runUntil(t, Options{Corpora: smallCorpora(t)[:1], Seed: 1}, "domains: uniformity")
	for _, name := range []string{"FNV-1a", "CRC32C"} {
		row(t, r.FPR, func(f FPRRow) bool { return f.Name == name && f.Load == 1 })
		row(t, r.Collisions, func(c Collision) bool { return c.Name == name && c.Bits == 32 })
	}
}
