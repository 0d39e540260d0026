package listedit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSplice(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, test := range []struct {
		name, old, want string
		s               Splice
		lines           int
	}{
		{"nothing", "a\nb\n", "a\nb\n", Splice{}, 2},
		{"append", "a\n", "a\nb\nc\n", Splice{Append: []string{"b", "c"}}, 1},
		{"append to nothing", "", "b\n", Splice{Append: []string{"b"}}, 0},
		{"append without an end", "a\nb", "a\nb\nc\n", Splice{Append: []string{"c"}}, 2},
		{"append in its style", "a\r\nb\r\n", "a\r\nb\r\nc\r\n", Splice{Append: []string{"c"}}, 2},
		{"both", "a\r\nb", "a\r\nb\r\nc\r\n", Splice{Append: []string{"c"}}, 2},
		{"replace", "a\nb\nc\n", "a\nB\nc\n", Splice{Replace: map[int]string{2: "B"}}, 3},
		{"replace in its style", "a\r\nb\nc", "A\r\nb\nC\r\n", Splice{Replace: map[int]string{1: "A", 3: "C"}}, 3},
		{"the mark stays", "\ufeffa\nb\n", "\ufeffA\nb\n", Splice{Replace: map[int]string{1: "A"}}, 2},
		{"the mark stays without its line", "\ufeffa\nb\n", "\ufeffb\n", Splice{Remove: map[int]bool{1: true}}, 1},
		{"remove", "a\nb\nc\n", "b\n", Splice{Remove: map[int]bool{1: true, 3: true}}, 1},
		{"replace without an end", "a\nb", "A\nb\n", Splice{Replace: map[int]string{1: "A"}}, 2},
		{"remove without an end", "a\r\nb\r\nc", "b\r\nc\r\n", Splice{Remove: map[int]bool{1: true}}, 2},
		{"remove the last", "a\nb", "a\n", Splice{Remove: map[int]bool{2: true}}, 1},
		{"remove and append", "a\nb", "a\nc\n", Splice{Remove: map[int]bool{2: true}, Append: []string{"c"}}, 1},
		{"remove all", "a\r\n", "# none\r\n", Splice{Remove: map[int]bool{1: true}, Empty: "# none"}, 0},
		{"nothing is left as it is", "", "", Splice{Empty: "# none"}, 0},
		{"far apart", text(30_000, 0), text(30_000, 10_000, 20_000, 30_000), Splice{Replace: map[int]string{20_000: "X"}, Remove: map[int]bool{10_000: true, 30_000: true}}, 29_998},
		{"a long line", long + "\nb\n", long + "\nB\n", Splice{Replace: map[int]string{2: "B"}}, 2},
		{"instead of a long line", long + "\r\nb\n", "A\r\nb\n", Splice{Replace: map[int]string{1: "A"}}, 2},
		{"without a long line", "\ufeff" + long + "\nb\n", "\ufeffb\n", Splice{Remove: map[int]bool{1: true}}, 1},
		{"bytes that are no text", "\xff\x00\r\n\r\r\n\n", "\xff\x00\r\n\r\r\n\n", Splice{}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got strings.Builder
			lines, err := test.s.Copy(&got, strings.NewReader(test.old))
			if err != nil || got.String() != test.want || lines != test.lines {
				t.Errorf("%d lines, error %v; got\n%.100q, want\n%.100q", lines, err, got.String(), test.want)
			}
		})
	}
}

// text returns n numbered lines; the second of three lines that are given is "X", and the
// others are missing.
func text(n int, changed ...int) string {
	var b strings.Builder
	for i := range n {
		switch pos := slices.Index(changed, i+1); {
		case pos == 1:
			b.WriteString("X\n")
		case pos < 0:
			fmt.Fprintf(&b, "%d.example\n", i+1)
		}
	}
	return b.String()
}

// FuzzSplice: without changes every text stays as it is, apart from a line end after its
// last line; and what is appended can be taken away again.
func FuzzSplice(f *testing.F) {
	for _, seed := range []string{"", "a", "a\n", "a\r\nb", "\ufeffa\r\n", "\n\n", "\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, old string) {
		copyWith := func(s Splice, text string) (string, int) {
			var b strings.Builder
			lines, err := s.Copy(&b, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			return b.String(), lines
		}
		same, lines := copyWith(Splice{}, old)
		if same != old && same != old+"\n" && same != old+"\r\n" {
			t.Fatalf("%q became %q", old, same)
		}
		longer, _ := copyWith(Splice{Append: []string{"new"}}, old)
		if !strings.HasPrefix(longer, old) || strings.Count(longer, "\n") > lines+1 {
			t.Fatalf("%q became %q", old, longer)
		}
		shorter, _ := copyWith(Splice{Remove: map[int]bool{lines + 1: true}}, longer)
		if strings.TrimRight(shorter, "\r\n") != strings.TrimRight(old, "\r\n") {
			t.Fatalf("%q became %q and then %q", old, longer, shorter)
		}
	})
}
