package listfiles

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/config"
)

func listOf(t testing.TB, format listfile.Format, path string) *List {
	t.Helper()
	l, err := New(config.List{Name: "blocked", Type: "block", Path: path, Format: format})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func browse(t testing.TB, l *List, place Place, n int) Page {
	t.Helper()
	again, err := ParsePlace(place.String())
	if err != nil || again != place {
		t.Fatalf("%v as text is %v (%v)", place, again, err)
	}
	p, err := Browse(t.Context(), l, place, n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shown(p Page) (all []string) {
	for _, e := range p.Entries {
		all = append(all, e.At().File[len(filepath.Dir(e.At().File))+1:]+":"+strconv.Itoa(e.Entry.Line)+" "+Written(e.Entry))
	}
	return all
}

// TestBrowse pages forwards and backwards through files of random lines, and compares with what
// was written.
func TestBrowse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		dir := t.TempDir()
		var want []string
		for file := range 1 + random.IntN(3) {
			var b strings.Builder
			name := fmt.Sprintf("%d.txt", file)
			for line := 1; line <= random.IntN(4000); line++ {
				switch random.IntN(12) {
				case 0:
					b.WriteString("# comment\n")
				case 1:
					b.WriteString(strings.Repeat("#", random.IntN(200_000)) + "\n")
				case 2:
					b.WriteString("not valid .. at all\n")
				case 3:
					b.WriteString("\r\n")
				default:
					entry := fmt.Sprintf("user%d@spam.example", line)
					want = append(want, fmt.Sprintf("%s:%d %s", name, line, entry))
					b.WriteString(entry + "\n")
				}
			}
			text := b.String()
			if random.IntN(2) == 0 {
				text = strings.TrimSuffix(text, "\n")
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		l := listOf(t, "plain", filepath.Join(dir, "*.txt"))
		n := 1 + random.IntN(300)
		var forward, backward []string
		for place := (&Place{Line: 1}); place != nil; {
			p := browse(t, l, *place, n)
			forward = append(forward, shown(p)...)
			place = p.Next
		}
		last := LastPage(len(l.Paths) - 1)
		for place := &last; place != nil; {
			p := browse(t, l, *place, n)
			page := shown(p)
			if len(page) == 0 && p.Before == nil && len(backward) == 0 && len(want) > 0 {
				t.Fatalf("no entries at %v", place)
			}
			// The first page of a file is whole, and may repeat what a later page had.
			for len(backward) > 0 && len(page) > 0 && slices.Contains(backward, page[len(page)-1]) {
				page = page[:len(page)-1]
			}
			backward = append(page, backward...)
			place = p.Before
		}
		if !slices.Equal(forward, want) {
			t.Fatalf("forwards %d entries, want %d", len(forward), len(want))
		}
		if !slices.Equal(backward, want) {
			t.Fatalf("backwards %d entries, want %d", len(backward), len(want))
		}
	}
}

// TestBrowseChangedFile shows whole lines, with their numbers, at a place of an earlier version.
func TestBrowseChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte("a.example\nbbbbbbbb.example\nc.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := listOf(t, "plain", path)
	for place, want := range map[Place]string{
		{Offset: 15, Line: 7}:              "list.txt:2 bbbbbbbb.example",
		{Offset: 1 << 40, Line: 7}:         "",
		{Offset: 1 << 40, Back: true}:      "list.txt:3 c.example",
		{Offset: 15, Line: 9, Back: true}:  "list.txt:1 a.example",
		{Offset: 0, Line: 99, Back: true}:  "list.txt:1 a.example",
		{Offset: 10, Line: 0}:              "list.txt:2 bbbbbbbb.example",
		{Offset: 27, Line: 3}:              "list.txt:3 c.example",
		{Offset: 27, Line: 3, Back: false}: "list.txt:3 c.example",
	} {
		if got := strings.Join(shown(browse(t, l, place, 1)), " "); got != want {
			t.Errorf("at %v: %q, want %q", place, got, want)
		}
	}
	if _, err := Browse(t.Context(), l, Place{File: 1}, 1); err == nil {
		t.Error("there is no second file")
	}
}

// TestBrowseFromStart shows the first entries of files that cannot be read from the middle.
func TestBrowseFromStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i := range MaxFirst + 5 {
		fmt.Fprintf(z, "d%d.example\n", i)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l := listOf(t, "plain", path)
	p := browse(t, l, Place{Line: 1}, 3)
	if p.Lines || p.Cut || p.Before != nil || shown(p)[2] != "list.gz:3 d2.example" {
		t.Errorf("first page: %+v", p)
	}
	p = browse(t, l, *p.Next, 3)
	if shown(p)[0] != "list.gz:4 d3.example" || p.Before == nil {
		t.Errorf("second page: %+v", p)
	}
	if p = browse(t, l, *p.Before, 3); shown(p)[0] != "list.gz:1 d0.example" {
		t.Errorf("back: %+v", p)
	}
	p = browse(t, l, LastPage(0), 10)
	if !p.Cut || p.Next != nil || len(p.Entries) != 10 || p.Entries[9].Entry.Line != MaxFirst {
		t.Errorf("last page: %+v", p)
	}
}

// TestBrowseLongLine gives up on a line without an end.
func TestBrowseLongLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := os.WriteFile(path, []byte("a.example\n"+strings.Repeat("x", 3*maxLineBytes)+"\nb.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := listOf(t, "plain", path)
	for _, place := range []Place{{Line: 1}, {Offset: 3*maxLineBytes - 100}} {
		if _, err := Browse(t.Context(), l, place, 10); err == nil {
			t.Errorf("at %v there is no error", place)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"", "0.0.1", "1.2.3-", "-1.0.0", "0.99999999999999999999.1", "a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePlace(s)
		if err != nil {
			return
		}
		if again, err := ParsePlace(p.String()); err != nil || again != p {
			t.Errorf("%q is %v, and that %v (%v)", s, p, again, err)
		}
	})
}

// TestBrowseLongList reads pages of a long list anywhere in it. SPAMGATE_ENTRIES says how long
// it is.
func TestBrowseLongList(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("SPAMGATE_ENTRIES"))
	count = max(count, 200_000)
	path := filepath.Join(t.TempDir(), "list.txt")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(f)
	for i := range count {
		fmt.Fprintf(out, "user%08d@spam.example\n", i)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	l := listOf(t, "plain", path)
	width := int64(len("user00000000@spam.example\n"))
	for what, place := range map[string]Place{
		"first": {Line: 1}, "middle": {Offset: int64(count/2) * width, Line: count/2 + 1}, "counted": {Offset: int64(count/2) * width}, "last": LastPage(0),
	} {
		began := time.Now()
		p := browse(t, l, place, 100)
		t.Logf("%s page of %d entries: %v", what, count, time.Since(began))
		if first := p.Entries[0].Entry; first.Key != fmt.Sprintf("user%08d@spam.example", first.Line-1) || len(p.Entries) != 100 {
			t.Errorf("%s: line %d is %s", what, first.Line, first.Key)
		}
	}
}
