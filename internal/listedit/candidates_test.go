package listedit

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
)

// spellings are lists that spell a key in every way that a list may.
var spellings = []string{
	"user@spam.example\nUSER@Spam.Example.\n<user@spam.example>\n \t< User@spam.example >  # c\n\"user\"@spam.example\n\"us\\er\"@spam.example\n\"\\user\"@spam.example\n",
	"spam.example\n.spam.example\n*.spam.example\n@spam.example\n*@spam.example\n!spam.example\n! .Spam.example. # c\n",
	"spam.exampl\nspam.example-1.example\nspam.example.net\nxspam.example\nspam.example#c\nspam.example#c@x.example\nspam.example\tx\n",
	"bücher.example\nxn--bcher-kva.example\nBu\u0308cher.example\nuser@BÜCHER.example\na.xn--bcher-kva.example\na.bücher.example\n",
	"ｓｐａｍ.example\nspam．example\nspam。example\ns\u00adpam.example\n\u017fpam.example\n\u212aelvin@spam.example\nkelvin@spam.example\n",
	"@[192.0.2.1]\nx@[192.0.2.1]\n@[IPv6:2001:DB8::1]\n@[ipv6:2001:db8:0::1]\n@[IPv6:::ffff:192.0.2.1]\n",
	"<>\n< >\n!<>\n\"\"@spam.example\n\"a b\"@spam.example\n\"a\\ b\"@spam.example\n\"!a\"@spam.example\n\"*a\"@spam.example\n\"#a\"@spam.example\n.a@spam.example\nuser@\n\"user\"@\n",
	"\ufeffspam.example\n\ufeffother.example\r\nspam.example\r\nspam.example\rx\n# spam.example\n\n  \nspam.example  # until=2001-01-01 over\nspam.example ## note",
	"caf\u00e9@spam.example\ncafe\u0301@spam.example\nCAFE\u0301@spam.example\n\u1e9e@spam.example\nss@spam.example\n",
}

// FuzzCandidates: an edit that parses candidates alone finds the same entries of a list,
// with the same lines, as one that parses every line.
func FuzzCandidates(f *testing.F) {
	for _, list := range spellings {
		f.Add(list, 0)
		f.Add(list, -1)
		f.Add(list, 3)
		f.Add(list+"\x00\n", 0)
	}
	f.Fuzz(func(t *testing.T, list string, which int) { checkCandidates(t, list, which, plain) })
}

// FuzzCandidatesOfRecipients is FuzzCandidates for lists with lines for recipients.
func FuzzCandidatesOfRecipients(f *testing.F) {
	for _, list := range spellings {
		for _, recipient := range []string{"ann@example.net ", "@Example.NET.\t", "\"a b\"@example.net ", " <bob@> ", "bücher.example\t \t"} {
			sided := ""
			for line := range strings.Lines(list) {
				sided += recipient + line
			}
			f.Add(sided, 0)
			f.Add(sided+list, 3)
			f.Add(sided, -1)
		}
	}
	sides := plain
	sides.PerRecipient = true
	f.Fuzz(func(t *testing.T, list string, which int) { checkCandidates(t, list, which, sides) })
}

// checkCandidates compares the candidates for one key with all lines. A negative which is for
// the entries at and below the domain of a key.
func checkCandidates(t *testing.T, list string, which int, o listfile.Options) {
	keys, err := keysIn(list, o)
	if len(keys) == 0 || err != nil {
		return
	}
	key := keys[uint(which)%uint(len(keys))]
	wanted := &Wanted{Keys: []string{key}}
	if which < 0 {
		name := key[strings.LastIndexAny(key, "@\t")+1:]
		wanted = &Wanted{Below: []string{strings.TrimPrefix(name, "*.")}}
		if name == "" {
			return
		}
	}
	c := newCandidates(strings.NewReader(list), wanted)
	if c == nil {
		return
	}
	if got, want := wantedOf(t, c, c.line, wanted, o), wantedOf(t, strings.NewReader(list), nil, wanted, o); !slices.Equal(got, want) {
		t.Fatalf("%.300q: found\n%v, want\n%v", list, got, want)
	}
}

// wantedOf returns the entries of a list that have some keys.
func wantedOf(t *testing.T, list io.Reader, line func(int) int, wanted *Wanted, o listfile.Options) (found []string) {
	t.Helper()
	match := wanted.match()
	for e, err := range listfile.NewReader(list, o).All() {
		if err != nil {
			t.Fatal(err)
		}
		if line != nil {
			e.Line = line(e.Line)
		}
		if match(e) {
			found = append(found, fmt.Sprintf("%+v", e))
		}
	}
	return found
}

var plain = listfile.Options{Format: listfile.Plain, Now: 1}

// keysIn returns the key of each entry in a list.
func keysIn(list string, o listfile.Options) (keys []string, err error) {
	for e, err := range listfile.NewReader(strings.NewReader(list), o).All() {
		if err != nil {
			return nil, err
		}
		keys = append(keys, Key(e))
	}
	return keys, nil
}

// What is longer than the buffer, or divided by its end, is found like everything else.
func TestLongCandidates(t *testing.T) {
	wanted := &Wanted{Keys: []string{"spam.example"}}
	lines := strings.Join(spellings, "\n")
	for _, before := range []string{
		strings.Repeat("other.example\n", 40_000),
		strings.Repeat("x", candidateBuffer+10) + "\n",
		strings.Repeat("x", 3*candidateBuffer) + "\nother.example\n",
		strings.Repeat("x", candidateBuffer-1) + "\n",
		strings.Repeat("x", candidateBuffer-8) + "\n",
		"spam.example" + strings.Repeat(" ", candidateBuffer) + "\n",
	} {
		list := before + lines
		c := newCandidates(strings.NewReader(list), wanted)
		got, want := wantedOf(t, c, c.line, wanted, plain), wantedOf(t, strings.NewReader(list), nil, wanted, plain)
		if len(want) < 8 || !slices.Equal(got, want) {
			t.Errorf("after %d bytes: found\n%v, want\n%v", len(before), got, want)
		}
	}
}

// Every spelling of every key in the seeds is a candidate.
func TestCandidates(t *testing.T) {
	list := strings.Join(spellings, "\n")
	keys, err := keysIn(list, plain)
	if err != nil {
		t.Fatal(err)
	}
	byKey := map[string]int{}
	for _, key := range keys {
		byKey[key]++
	}
	if byKey["spam.example"] < 8 || byKey["xn--bcher-kva.example"] < 3 || byKey["user@spam.example"] < 7 {
		t.Fatalf("%v", byKey)
	}
	for key, n := range byKey {
		c := newCandidates(strings.NewReader(list), &Wanted{Keys: []string{key}})
		if c == nil {
			continue // then every line is parsed
		}
		if found := wantedOf(t, c, c.line, &Wanted{Keys: []string{key}}, plain); len(found) != n {
			t.Errorf("%s: found %d of %d", key, len(found), n)
		}
	}
	for _, name := range []string{"example", "spam.example", "xn--bcher-kva.example"} {
		below := &Wanted{Below: []string{name}}
		c := newCandidates(strings.NewReader(list), below)
		got, want := wantedOf(t, c, c.line, below, plain), wantedOf(t, strings.NewReader(list), nil, below, plain)
		if len(want) < 3 || !slices.Equal(got, want) {
			t.Errorf("below %s: found\n%v, want\n%v", name, got, want)
		}
	}
}

// Where a file is not a list, the error is that of reading every line.
func TestCandidatesOfNoList(t *testing.T) {
	for _, file := range []string{
		"a.example\nb.exam\x00ple\n", "\xff\xfea\x00", "PK\x03\x04 zip\n", strings.Repeat("x", 2*candidateBuffer) + "\x00",
	} {
		_, want := keysIn(file, plain)
		err := FindWanted(strings.NewReader(file), plain, &Wanted{Keys: []string{"z.example"}}, func(listfile.Entry) error { return nil })
		if err == nil || want == nil || err.Error() != want.Error() {
			t.Errorf("%.20q: error %v, want %v", file, err, want)
		}
	}
}

// BenchmarkFind finds an entry among a million lines.
func BenchmarkFind(b *testing.B) {
	list := strings.Repeat("mail.some-name.example\nuser@another-name.example\n", 500_000)
	e, err := listfile.ParseEntry("mail.wanted.example", listfile.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		if _, err := Find(strings.NewReader(list), listfile.Options{}, []listfile.Entry{e}); err != nil {
			b.Fatal(err)
		}
	}
}
