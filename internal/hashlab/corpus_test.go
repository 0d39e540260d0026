package hashlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// textLines returns n lines, each ended by a line feed.
func textLines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	return b.String()
}

func TestReadCorpus(t *testing.T) {
	enough := textLines(MinKeys, func(i int) string { return fmt.Sprintf("key%d", i) })
	for _, c := range []struct {
		name, text string
		extra      []string // keys after those of enough
		duplicates int
	}{
		{"plain", enough, nil, 0},
		{"last line without its end", enough + "tail", []string{"tail"}, 0},
		{"an empty line is the empty key", enough + "\n", []string{""}, 0},
		{"raw bytes", enough + " a\r\n#b\n\x00\xff\n", []string{" a\r", "#b", "\x00\xff"}, 0},
		{"duplicates", enough + "x\nkey0\nx\n\n\n", []string{"x", ""}, 3},
		{"the longest line", enough + strings.Repeat("a", MaxKeyBytes) + "\nb\n", []string{strings.Repeat("a", MaxKeyBytes), "b"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range []struct {
				name string
				read func() (*Corpus, error)
			}{
				{"whole", func() (*Corpus, error) { return ReadCorpus("c", strings.NewReader(c.text), false) }},
				{"halves", func() (*Corpus, error) {
					return ReadCorpus("c", iotest.HalfReader(strings.NewReader(c.text)), false)
				}},
			} {
				corpus, err := r.read()
				if err != nil {
					t.Fatalf("%s: %v", r.name, err)
				}
				if corpus.Name != "c" || corpus.Duplicates != c.duplicates || len(corpus.Keys) != MinKeys+len(c.extra) {
					t.Fatalf("%s: %q, %d keys, %d duplicates", r.name, corpus.Name, len(corpus.Keys), corpus.Duplicates)
				}
				for i, want := range c.extra {
					if got := string(corpus.Keys[MinKeys+i]); got != want {
						t.Errorf("%s: key %d is %.20q, want %.20q", r.name, MinKeys+i, got, want)
					}
				}
			}
		})
	}
}

func TestReadCorpusAsList(t *testing.T) {
	list := "# a comment\n" + textLines(MinKeys, func(i int) string { return fmt.Sprintf("Shop%d.Example # reason", i) }) +
		"shop0.example\nco.uk\nuser@example.com\n!shop1.example\n"
	corpus, err := ReadCorpus("list", strings.NewReader(list), true)
	if err != nil {
		t.Fatal(err)
	}
	if len(corpus.Keys) != MinKeys+1 || corpus.Duplicates != 2 || corpus.Invalid != 1 {
		t.Errorf("%d keys, %d duplicates, %d invalid; want %d, 2, 1", len(corpus.Keys), corpus.Duplicates, corpus.Invalid, MinKeys+1)
	}
	if first, last := string(corpus.Keys[0]), string(corpus.Keys[MinKeys]); first != "shop0.example" || last != "user@example.com" {
		t.Errorf("first key %q, last key %q", first, last)
	}
}

func TestReadCorpusRefuses(t *testing.T) {
	enough := textLines(MinKeys, func(i int) string { return fmt.Sprintf("key%d", i) })
	long := strings.Repeat("a", 1<<20)
	for _, c := range []struct {
		name, text string
		asList     bool
		says       []string
	}{
		{"nothing", "", false, []string{"is empty", "1000"}},
		{"only comments", "# nothing\n", true, []string{"is empty", "1000"}},
		{"no entries", "co.uk\ncom\n", true, []string{"is empty", "2 lines are not entries"}},
		{"few keys", "a\nb\na\n", false, []string{"2 different keys", "1000"}},
		{"a line of 1 MiB", enough + long + "\n", false, []string{"line 1001", "1048575"}},
		{"a line of 1 MiB without its end", long, false, []string{"line 1:", "1048575"}},
		{"a line of 1 MiB in a list", "a.example\n" + long + "\n", true, []string{"corpus some/file: line 2:", "1048575"}},
		{"a list that is binary", "a.example\n\x00\n", true, []string{"line 2", "NUL"}},
	} {
		corpus, err := ReadCorpus("some/file", strings.NewReader(c.text), c.asList)
		if err == nil || corpus != nil {
			t.Errorf("%s: %v, no error", c.name, corpus)
			continue
		}
		for _, says := range append(c.says, "some/file") {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q does not say %q", c.name, err, says)
			}
		}
	}
	broken := errors.New("broken")
	for _, asList := range []bool{false, true} {
		if _, err := ReadCorpus("f", iotest.ErrReader(broken), asList); !errors.Is(err, broken) {
			t.Errorf("a reader's error: %v", err)
		}
	}
}

// FuzzReadCorpus checks the reader against a plain split of the text.
func FuzzReadCorpus(f *testing.F) {
	f.Add("a\nb\n\na\r\n#\x00")
	f.Add("no end")
	f.Add("\n\n")
	f.Add("key0\nkey0")
	enough := textLines(MinKeys, func(i int) string { return fmt.Sprintf("key%d", i) })
	f.Fuzz(func(t *testing.T, tail string) {
		all := enough + tail
		var want []string
		seen := make(map[string]bool)
		for _, line := range strings.Split(strings.TrimSuffix(all, "\n"), "\n") {
			if !seen[line] {
				seen[line] = true
				want = append(want, line)
			}
		}
		for _, r := range []io.Reader{strings.NewReader(all), iotest.DataErrReader(iotest.HalfReader(strings.NewReader(all)))} {
			corpus, err := ReadCorpus("fuzz", r, false)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, len(corpus.Keys))
			for i, key := range corpus.Keys {
				got[i] = string(key)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: %q, want %q", tail, got[MinKeys:], want[MinKeys:])
			}
		}
	})
}

// made returns the corpus of a source.
func made(tb testing.TB, s source) *Corpus {
	tb.Helper()
	c, err := s.make(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestGeneratingStops(t *testing.T) {
	for _, s := range defaultSources(1, 1<<20)[1:] {
		if c, err := s.make(cancelled()); c != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v", s.name, c != nil, err)
		}
	}
}

// TestDefaultCorpora holds that they have the keys they promise, all different,
// the same for the same seed, and others for another one where they are random.
func TestDefaultCorpora(t *testing.T) {
	const n = 20_000
	first, again, other := defaultSources(1, n), defaultSources(1, n), defaultSources(2, n)
	names := make(map[string]bool)
	for i, source := range first {
		corpus := made(t, source)
		if names[corpus.Name] || corpus.Name != source.name || corpus.What == "" {
			t.Errorf("corpus %d is called %q, the source %q; %q", i, corpus.Name, source.name, corpus.What)
		}
		names[corpus.Name] = true
		if err := corpus.check(); err != nil || len(corpus.Keys) != source.keys {
			t.Errorf("%s: %d keys, want %d; %v", corpus.Name, len(corpus.Keys), source.keys, err)
		}
		seen := make(map[string]bool)
		for _, key := range corpus.Keys {
			seen[string(key)] = true
		}
		if len(seen) != len(corpus.Keys) {
			t.Errorf("%s: %d different keys of %d", corpus.Name, len(seen), len(corpus.Keys))
		}
		info := corpus.info()
		if same := made(t, again[i]).info(); same != info {
			t.Errorf("made again: %v, before %v", same, info)
		}
		fixed := corpus.Name == realList || corpus.Name == "sequential"
		if differs := made(t, other[i]).info().SHA256 != info.SHA256; differs == fixed {
			t.Errorf("%s: differs with another seed: %v", corpus.Name, differs)
		}
	}
	if len(names) != 6 {
		t.Errorf("%d default corpora, want 6", len(names))
	}
}

// TestCorpusInfo: the checksum is what "printf 'a\\nbc\\n' | sha256sum" prints.
func TestCorpusInfo(t *testing.T) {
	c := &Corpus{Name: "n", What: "w", Keys: [][]byte{[]byte("a"), []byte("bc")}, Duplicates: 3, Invalid: 4}
	want := CorpusInfo{"n", "w", 2, 3, "4b8d1dd1e2b97bee100f449a998ac84a292fb223d969296c4737b44459e545de", 3, 4}
	if got := c.info(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPermutation holds that every number below n comes once.
func TestPermutation(t *testing.T) {
	for _, n := range []uint64{2, 3, 4, 5, 100, 1 << 10, 4097} {
		p := newPermutation(7, n)
		seen := make([]bool, n)
		moved := 0
		for i := range n {
			v := p.at(i)
			if v >= n || seen[v] {
				t.Fatalf("n = %d: place %d has %d, beyond n or there before", n, i, v)
			}
			seen[v] = true
			if v != i {
				moved++
			}
		}
		if n >= 100 && moved < int(n)*9/10 {
			t.Errorf("n = %d: only %d places moved", n, moved)
		}
	}
}

// TestAddressesAreDifferent looks at many numbers of the widest range.
func TestAddressesAreDifferent(t *testing.T) {
	for _, domains := range []uint64{1, manyDomains} {
		a := newAddresses(3, domains)
		seen, pos := make(map[string]bool), make(map[string]bool)
		for i := range uint64(200_000) {
			key := string(a.append(nil, i))
			if seen[key] {
				t.Fatalf("%d domains: %q stands twice", domains, key)
			}
			seen[key] = true
			_, domain, _ := strings.Cut(key, "@")
			pos[domain] = true
		}
		if len(pos) > int(domains) || len(pos) < int(domains)*99/100 { // ten addresses to each, at random
			t.Errorf("%d domains, want about %d", len(pos), domains)
		}
	}
}
