package delta

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"
)

// made returns the delta of two texts, and fails the test if it does not make the new one.
func made(t *testing.T, old, new string) ([]byte, Stats) {
	t.Helper()
	var delta, out bytes.Buffer
	stats, err := Write(&delta, strings.NewReader(old), strings.NewReader(new))
	if err != nil {
		t.Fatal(err)
	}
	if err := Apply(&out, strings.NewReader(old), bytes.NewReader(delta.Bytes()), int64(len(new))); err != nil {
		t.Fatalf("%v (old %d bytes, new %d)", err, len(old), len(new))
	}
	if out.String() != new {
		t.Fatal("another file than the new one, without an error")
	}
	h, err := ReadHeader(bytes.NewReader(delta.Bytes()))
	if err != nil || h != stats.Header || h.OldSize != int64(len(old)) || h.NewSize != int64(len(new)) {
		t.Fatalf("header %+v, %v", h, err)
	}
	if stats.Bytes != int64(delta.Len()) {
		t.Errorf("the delta has %d bytes, not %d", delta.Len(), stats.Bytes)
	}
	return delta.Bytes(), stats
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "user%d@example.net\n", i)
	}
	return b.String()
}

func TestDelta(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine+5)
	list := lines(0, 5000)
	shuffled := strings.SplitAfter(list, "\n")
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, c := range []struct {
		name     string
		old, new string
		inserted int64 // at most
	}{
		{"both empty", "", "", 0},
		{"from nothing", "", list, int64(len(list))},
		{"to nothing", list, "", 0},
		{"the same", list, list, 0},
		{"a line at the end", list, list + "new@example.net\n", 16},
		{"a line at the beginning", list, "new@example.net\n" + list, 16},
		{"a line in the middle", list, lines(0, 2000) + "new@example.net\n" + lines(2000, 5000), 16},
		{"a line is missing", list, lines(0, 2000) + lines(2001, 5000), 0},
		{"a thousand lines are missing", list, lines(0, 2000) + lines(3000, 5000), 0},
		{"a thousand new lines", lines(0, 1000) + lines(2000, 3000), lines(0, 3000), int64(len(lines(1000, 2000)))},
		{"halves exchanged", list, lines(2500, 5000) + lines(0, 2500), 0},
		{"no newline at the end", list, strings.TrimSuffix(list, "\n"), 20},
		{"a newline at the end", strings.TrimSuffix(list, "\n"), list, 21},
		{"all lines the same", strings.Repeat("a\n", 9000), strings.Repeat("a\n", 9001), 2},
		{"all lines empty", strings.Repeat("\n", 90000), strings.Repeat("\n", 80000), 0},
		{"long lines", long + "\n" + list, list + long + "\n", int64(maxLine)},
		{"a long line that grows at its end", long, long + "y", int64(maxLine)},
		{"zero bytes", strings.Repeat("\x00", 100000), strings.Repeat("\x00", 100001), int64(maxLine)},
		{"shuffled", list, strings.Join(shuffled, ""), 200},
		{"nothing shared", list, strings.ToUpper(list), int64(len(list))},
		{"short lines between changes", "a\nb\nc\nd\ne\n", "a\nx\nc\ny\ne\n", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, stats := made(t, c.old, c.new); stats.Inserted > c.inserted {
				t.Errorf("%d bytes inserted, at most %d needed", stats.Inserted, c.inserted)
			}
		})
	}
}

// Random changes of random files give the new file, and no more than the changed lines
// with some around them is inserted.
func TestRandomChanges(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		old := strings.SplitAfter(lines(0, 1+r.IntN(3000)), "\n")
		if seed%3 == 0 { // many lines that repeat
			for i := range old {
				old[i] = fmt.Sprintf("%d\n", r.IntN(40))
			}
		}
		now, changed := slices.Clone(old), 0
		for range r.IntN(60) {
			at := r.IntN(len(now) + 1)
			switch n := 1 + r.IntN(30); r.IntN(4) {
			case 0:
				now = slices.Delete(now, at, min(len(now), at+n))
			case 1:
				now = slices.Insert(now, at, lines(1e6+int(seed), 1e6+int(seed)+n))
				changed += n
			case 2:
				if at < len(now) {
					now[at] = fmt.Sprintf("changed%d@example.net\n", r.Int())
					changed++
				}
			case 3:
				part := slices.Clone(now[at:min(len(now), at+n)])
				now = slices.Insert(now, r.IntN(len(now)+1), part...)
				changed += n
			}
		}
		_, stats := made(t, strings.Join(old, ""), strings.Join(now, ""))
		if most := int64(changed+120) * 40; seed%3 != 0 && stats.Inserted > most {
			t.Errorf("seed %d: %d bytes inserted for %d changed lines", seed, stats.Inserted, changed)
		}
	}
}

// The sample of a file with more lines than there are slots still finds what has moved.
func TestSample(t *testing.T) {
	n := 1_000_000
	if testing.Short() {
		t.Skip("a large file")
	}
	old := lines(0, n)
	delta, stats := made(t, old, lines(n/2, n)+lines(0, n/2))
	if stats.Inserted > 4000 || len(delta) > 4000 {
		t.Errorf("%d bytes inserted, %d in the delta", stats.Inserted, len(delta))
	}
}

func TestErrBase(t *testing.T) {
	delta, _ := made(t, lines(0, 100), lines(0, 101))
	for _, old := range []string{"", lines(0, 99), lines(1, 101), lines(0, 100) + "\n"} {
		var out bytes.Buffer
		if err := Apply(&out, strings.NewReader(old), bytes.NewReader(delta), 1<<20); !errors.Is(err, ErrBase) || out.Len() > 0 {
			t.Errorf("%d bytes written, %v", out.Len(), err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	now := lines(0, 101)
	delta, _ := made(t, lines(0, 100), now)
	var out bytes.Buffer
	err := Apply(&out, strings.NewReader(lines(0, 100)), bytes.NewReader(delta), int64(len(now)-1))
	if !errors.Is(err, ErrTooLarge) || out.Len() > 0 {
		t.Errorf("%d bytes written, %v", out.Len(), err)
	}
}

// A delta with any byte changed, missing or added is an error.
func TestDamaged(t *testing.T) {
	old, now := lines(0, 100), lines(1, 50)+"new@example.net\n"+lines(50, 101)
	delta, _ := made(t, old, now)
	try := func(what string, d []byte) {
		var out bytes.Buffer
		err := Apply(&out, strings.NewReader(old), bytes.NewReader(d), 1<<20)
		switch {
		case err == nil:
			t.Errorf("%s: no error", what)
		case !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrBase) && !errors.Is(err, ErrTooLarge):
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range delta {
		changed := bytes.Clone(delta)
		changed[i] ^= 0x55
		try("byte "+strconv.Itoa(i), changed)
		try("cut at "+strconv.Itoa(i), delta[:i])
	}
	try("more after it", append(bytes.Clone(delta), delta[headerSize:]...))
}

// operations returns a delta with the given operations.
func operations(t *testing.T, old, now string, ops ...byte) []byte {
	t.Helper()
	whole, _ := made(t, old, now)
	packed, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return packed.EncodeAll(ops, bytes.Clone(whole[:headerSize]))
}

func TestHostileOperations(t *testing.T) {
	old, now := "0123456789abcdefghij\n", "0123456789abcdefghij\n0123456789abcdefghij\n"
	good := []byte{0, 21, 0, 0, 21, 41}
	for _, c := range []struct {
		name, want string
		ops        []byte
	}{
		{"good", "", good},
		{"copies nothing", "makes 0 bytes", []byte{0, 0}},
		{"copies little", "makes 15 bytes", []byte{0, 15, 0, 0, 27, 0}},
		{"inserts little", "makes 1 bytes", []byte{1, 'a', 0}},
		{"before the beginning", "copies 21 bytes from -1 of 21", []byte{0, 21, 1}},
		{"after the end", "copies 21 bytes from 1 of 21", []byte{0, 21, 2}},
		{"too much", "more than the 42 bytes", []byte{0, 43, 0}},
		{"inserts too much", "more than the 42 bytes", []byte{43}},
		{"a length without end", "overflow", bytes.Repeat([]byte{0xff}, 20)},
		{"the largest length", "more than the 42 bytes", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
		{"a far place", "copies 21 bytes from -", []byte{0, 21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
		{"ends early", "EOF", []byte{0, 21, 0}},
		{"ends in an insertion", "EOF", []byte{42, 'a'}},
		{"goes on", "more after its end", append(bytes.Clone(good), 0)},
		{"another file", "another file than it should", append([]byte{42}, strings.Repeat("a", 42)+"\x00"...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Apply(io.Discard, strings.NewReader(old), bytes.NewReader(operations(t, old, now, c.ops...)), 1<<20)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// The errors of the files and of the delta's reader are returned as they are.
func TestErrorsPassThrough(t *testing.T) {
	old, now := lines(0, 100), lines(0, 200)
	delta, _ := made(t, old, now)
	broken := errors.New("broken")
	for i := range len(delta) {
		r := io.MultiReader(bytes.NewReader(delta[:i]), iotest.ErrReader(broken))
		if err := Apply(io.Discard, strings.NewReader(old), r, 1<<20); !errors.Is(err, broken) {
			t.Fatalf("after %d bytes of the delta: %v", i, err)
		}
	}
	if err := Apply(failing{broken}, strings.NewReader(old), bytes.NewReader(delta), 1<<20); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := Write(failing{broken}, strings.NewReader(old), strings.NewReader(now)); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func FuzzDelta(f *testing.F) {
	f.Add("", "")
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Add(lines(0, 20), lines(5, 25))
	f.Fuzz(func(t *testing.T, old, new string) { made(t, old, new) })
}

// A delta from anywhere makes the file that its header names, or is an error.
func FuzzApply(f *testing.F) {
	old := lines(0, 20)
	var delta bytes.Buffer
	if _, err := Write(&delta, strings.NewReader(old), strings.NewReader(lines(3, 30))); err != nil {
		f.Fatal(err)
	}
	f.Add(delta.Bytes())
	f.Fuzz(func(t *testing.T, delta []byte) {
		var out bytes.Buffer
		err := Apply(&out, strings.NewReader(old), bytes.NewReader(delta), 1<<16)
		if out.Len() > 1<<16 {
			t.Fatalf("%d bytes written", out.Len())
		}
		if err != nil {
			return
		}
		h, _ := ReadHeader(bytes.NewReader(delta))
		if size, sum, _ := digest(bytes.NewReader(out.Bytes())); size != h.NewSize || sum != h.NewSHA256 {
			t.Fatal("another file than the header names")
		}
	})
}

// TestLarge measures a hundred thousand changed lines of SPAMGATE_DELTA_LINES.
func TestLarge(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SPAMGATE_DELTA_LINES"))
	if n == 0 {
		t.Skip("SPAMGATE_DELTA_LINES is not set")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 1))
	change := map[int]bool{}
	for len(change) < min(100_000, n/100) {
		change[r.IntN(n)] = true
	}
	file := func(name string, changed bool) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		r := rand.New(rand.NewPCG(2, 2))
		var b bytes.Buffer
		for i := range n {
			text := fmt.Sprintf("%x@example%d.net\n", r.Uint64(), r.IntN(100000))
			if changed && change[i] {
				text = fmt.Sprintf("changed%x@changed%d.net\n", i*7919, i)
			}
			if b.WriteString(text); b.Len() > 1<<20 {
				b.WriteTo(f)
			}
		}
		if _, err := b.WriteTo(f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	old, now, delta := file("old", false), file("new", true), file("delta", false)
	if err := errors.Join(delta.Truncate(0), second(delta.Seek(0, io.SeekStart))); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	stats, err := Write(delta, old, now)
	if err != nil {
		t.Fatal(err)
	}
	wrote := time.Since(start)
	start = time.Now()
	if err := errors.Join(second(delta.Seek(0, io.SeekStart)), Apply(io.Discard, old, delta, stats.NewSize)); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines, %d changed: %d bytes → %d, %d inserted; written in %v, applied in %v",
		n, len(change), stats.NewSize, stats.Bytes, stats.Inserted, wrote, time.Since(start))
	if stats.Bytes > 60*int64(len(change)) {
		t.Errorf("%d bytes for %d changed lines", stats.Bytes, len(change))
	}
}

func second[T any](_ T, err error) error { return err }
