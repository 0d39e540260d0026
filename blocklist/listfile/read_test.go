package listfile

import (
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"spamgate/internal/disposable"
)

func TestReadCounts(t *testing.T) {
	text := "# head\r\n\r\nexample.com # one\r\ncom\nexample.com # again\n\n  \nuser@example.net"
	entries, problems, res := mustRead(t, text, Options{})
	if want := (Result{Entries: 3, Invalid: 1, Lines: 8, Format: Plain}); !reflect.DeepEqual(res, want) {
		t.Errorf("got %+v, want %+v", res, want)
	}
	var lines []int
	for _, e := range entries {
		lines = append(lines, e.Line)
	}
	if !slices.Equal(lines, []int{3, 5, 8}) || problems[0].Line != 4 {
		t.Errorf("entries on lines %v, problem on line %d", lines, problems[0].Line)
	}
	if entries[0].Reason != "one" || entries[1].Reason != "again" {
		t.Errorf("a repeated entry is passed on each time: %+v", entries)
	}
}

func TestReadEmpty(t *testing.T) {
	for _, text := range []string{"", bom, "\n", "\r\n", "# only a comment", bom + "# only a comment\n"} {
		entries, problems, _ := mustRead(t, text, Options{})
		if len(entries)+len(problems) > 0 {
			t.Errorf("%q: %v, %v", text, entries, problems)
		}
	}
}

// TestReadBOM: put together, files with a byte order mark have it inside.
func TestReadBOM(t *testing.T) {
	entries, problems, _ := mustRead(t, bom+"user@example.com\n"+bom+"user@example.net\n", Options{})
	if len(entries) != 2 || len(problems) != 0 || entries[1].Key != "user@example.net" {
		t.Errorf("%+v, %v", entries, problems)
	}
}

func TestReadRefusesBinary(t *testing.T) {
	utf16Text := func(order func([]byte, uint16) []byte, mark string) string {
		b := []byte(mark)
		for _, u := range utf16.Encode([]rune("example.com\n")) {
			b = order(b, u)
		}
		return string(b)
	}
	le := func(b []byte, u uint16) []byte { return append(b, byte(u), byte(u>>8)) }
	be := func(b []byte, u uint16) []byte { return append(b, byte(u>>8), byte(u)) }
	long := strings.Repeat("a", 3*readBuffer)
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"UTF-16LE", utf16Text(le, "\xFF\xFE"), ErrUTF16},
		{"UTF-16BE", utf16Text(be, "\xFE\xFF"), ErrUTF16},
		{"UTF-16LE without a mark", utf16Text(le, ""), ErrBinary},
		{"NUL in an entry", "example.com\nexam\x00ple.net\n", ErrBinary},
		{"NUL in a comment", "# a\x00b\n", ErrBinary},
		{"NUL far into a long line", long + "\x00", ErrBinary},
		{"NUL behind a long line", long + "\n\x00", ErrBinary},
	} {
		_, err := read(strings.NewReader(c.text), Options{}, func(Entry) error { return nil }, nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
	}
}

func TestReadLongLines(t *testing.T) {
	entry := "example.com # "
	fits := entry + strings.Repeat("x", MaxLine-len(entry))
	for _, c := range []struct {
		name, line       string
		entries, invalid int
	}{
		{"longest", fits, 1, 0},
		{"longest, CRLF", fits + "\r", 1, 0},
		{"longest, byte order mark", bom + fits, 1, 0},
		{"one more", fits + "x", 0, 1},
		{"as long as the buffer", strings.Repeat("a", readBuffer-1), 0, 1},
		{"longer than the buffer", strings.Repeat("a", readBuffer), 0, 1},
		{"much longer", strings.Repeat("a", 3*readBuffer), 0, 1},
		{"spaces", strings.Repeat(" ", 2*readBuffer) + "example.com", 0, 1},
		{"comment", "# " + strings.Repeat("a", 3*readBuffer), 0, 0},
		{"blank", strings.Repeat(" ", MaxLine), 0, 0},
		{"a long blank", strings.Repeat(" ", 2*MaxLine), 0, 1},
		{"as long as a part", strings.Repeat("a", partSize-1), 0, 1},
		{"longer than a part", strings.Repeat("a", partSize), 0, 1},
	} {
		entries, problems, res := mustRead(t, "example.org\n"+c.line+"\nexample.net", Options{})
		if res.Entries != c.entries+2 || res.Invalid != c.invalid || res.Lines != 3 {
			t.Errorf("%s: %+v", c.name, res)
			continue
		}
		if last := entries[len(entries)-1]; last.Key != "example.net" || last.Line != 3 {
			t.Errorf("%s: the entry behind it: %+v", c.name, last)
		}
		for _, p := range problems {
			if p.What != "a line of more than 4096 bytes" || p.Line != 2 || !p.TooLong || len(p.Text) > maxText {
				t.Errorf("%s: %+v", c.name, p)
			}
		}
	}
}

// endless is a line without an end.
type endless int

func (n *endless) Read(p []byte) (int, error) {
	if *n <= 0 {
		return 0, io.EOF
	}
	*n -= endless(len(p))
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestReadBoundsMemory: a line of 16 MiB is read in the memory of a short one.
func TestReadBoundsMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	line := endless(16 << 20)
	res, err := read(&line, Options{}, func(Entry) error { return nil }, nil)
	runtime.ReadMemStats(&after)
	if err != nil || res.Invalid != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 { // the detector of races adds to it
		t.Errorf("%d bytes allocated", got)
	}
}

func TestReadErrors(t *testing.T) {
	stop := errors.New("stop")
	calls := 0
	_, err := read(strings.NewReader("example.com\nexample.net\n"), Options{}, func(Entry) error { calls++; return stop }, nil)
	if err != stop || calls != 1 {
		t.Errorf("an error from the callback: %v after %d calls", err, calls)
	}
	broken := errors.New("disk on fire")
	for _, text := range []string{"", "example.com\n", "exam", strings.Repeat("a", 2*readBuffer)} {
		r := io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
		if _, err := read(r, Options{}, func(Entry) error { return nil }, nil); !errors.Is(err, broken) {
			t.Errorf("reader fails after %d bytes: %v", len(text), err)
		}
	}
}

func TestRealList(t *testing.T) {
	entries, problems, res := mustRead(t, string(disposable.Text()), Options{})
	notes := []string{`22 lines, the first is line 3489: "3utilities.com": ` + noteTexts[notePrivate]}
	if want := (Result{Entries: 121567, Invalid: 3, Lines: 121570, Format: Plain, Notes: notes}); !reflect.DeepEqual(res, want) {
		t.Errorf("got %+v, want %+v", res, want)
	}
	var suffixes []string
	for _, p := range problems {
		suffixes = append(suffixes, p.Text)
		if p.What != errSuffix.Error() {
			t.Error(p)
		}
	}
	if want := []string{"edu.pl", "my.id", "web.id"}; !slices.Equal(suffixes, want) {
		t.Errorf("refused %q, want %q", suffixes, want)
	}
	keys := map[string]bool{}
	for _, e := range entries {
		checkEntry(t, e)
		keys[e.Key] = true
	}
	for _, k := range []string{"0-180.com", "xn--instgram-cza.com", "xn--gmal-nza.net"} {
		if !keys[k] {
			t.Errorf("%s is not in the list", k)
		}
	}
}

func BenchmarkReadRealList(b *testing.B) {
	text := string(disposable.Text())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(strings.NewReader(text), Options{}, func(Entry) error { return nil }, nil); err != nil {
			b.Fatal(err)
		}
	}
}
