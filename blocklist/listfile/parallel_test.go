package listfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// found is what reading a file yielded.
type found struct {
	entries  []Entry
	problems []Problem
	result   Result
	err      error
}

func readOnce(r io.Reader, o Options) (f found) {
	f.result, f.err = read(r, o,
		func(e Entry) error { f.entries = append(f.entries, e); return nil },
		func(p Problem) { f.problems = append(f.problems, p) })
	return f
}

func readParallel(r io.Reader, o Options, workers int) (f found) {
	var mu sync.Mutex
	f.result, f.err = ReadParallel(context.Background(), r, o, workers, func() func(Entry) error {
		return func(e Entry) error {
			mu.Lock()
			defer mu.Unlock()
			f.entries = append(f.entries, e)
			return nil
		}
	}, func(p Problem) { f.problems = append(f.problems, p) })
	f.entries = byLine(f.entries)
	return f
}

func byLine(entries []Entry) []Entry {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b Entry) int { return cmp.Compare(a.Line, b.Line) })
}

// sameInParallel holds ReadParallel against Read.
func sameInParallel(t testing.TB, text string, o Options, want found) {
	t.Helper()
	for _, workers := range []int{1, 3} {
		got := readParallel(strings.NewReader(text), o, workers)
		if (got.err == nil) != (want.err == nil) || want.err != nil && got.err.Error() != want.err.Error() {
			t.Errorf("%d workers: error %v, want %v", workers, got.err, want.err)
		}
		if want.err != nil {
			continue
		}
		if !slices.Equal(got.entries, byLine(want.entries)) {
			t.Errorf("%.200q, %d workers: entries\n got %+v\nwant %+v", text, workers, got.entries, want.entries)
		}
		if !slices.Equal(got.problems, want.problems) {
			t.Errorf("%.200q, %d workers: problems\n got %+v\nwant %+v", text, workers, got.problems, want.problems)
		}
		if !reflect.DeepEqual(got.result, want.result) {
			t.Errorf("%.200q, %d workers: %+v, want %+v", text, workers, got.result, want.result)
		}
	}
}

// TestReadParallel reads texts of several parts, whose ends fall anywhere in a
// line, with lines of all kinds.
func TestReadParallel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{partSize + 1, partSize - 1, partSize, 3*partSize + 12345}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, size := range sizes {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			switch random.IntN(10) {
			case 0:
				fmt.Fprintf(&b, "# comment %d\r\n", i)
			case 1:
				fmt.Fprintf(&b, "bad line %d\n", i)
			case 2:
				fmt.Fprintf(&b, "%sUser%d@Example.COM # reason until=2030-01-01 ## note\n", bom, i)
			case 3:
				b.WriteString(strings.Repeat("\n", random.IntN(5)))
			default:
				fmt.Fprintf(&b, "host%d.example.com\n", i)
			}
		}
		text := b.String()[:size]
		for _, text := range []string{text, text + "\n", text + "\n" + strings.Repeat("x", 2*partSize), strings.Repeat("x", 2*partSize) + "\n" + text} {
			want := readOnce(strings.NewReader(text), Options{})
			if want.err != nil || len(want.entries) == 0 {
				t.Fatal(want.err)
			}
			sameInParallel(t, text, Options{}, want)
		}
	}
}

// TestReadParallelErrors: the first error in the file's order is the one, and
// nothing is left running.
func TestReadParallelErrors(t *testing.T) {
	synctest.Test(t, readParallelErrors) // which fails where a goroutine is left
}

func readParallelErrors(t *testing.T) {
	some := strings.Repeat("host.example.com\n", partSize/4)
	broken := errors.New("disk on fire")
	for name, c := range map[string]struct {
		r    func() io.Reader
		want error
	}{
		"NUL":              {func() io.Reader { return strings.NewReader(some + "a\x00b\n" + some) }, ErrBinary},
		"NUL in long line": {func() io.Reader { return strings.NewReader(some + strings.Repeat("a", 3*partSize) + "\x00") }, ErrBinary},
		"broken": {func() io.Reader {
			return io.MultiReader(strings.NewReader(some+"exam"), iotest.ErrReader(broken))
		}, broken},
		"broken in long line": {func() io.Reader {
			return io.MultiReader(strings.NewReader(some+strings.Repeat("a", 3*partSize)), iotest.ErrReader(broken))
		}, broken},
		"cut": {func() io.Reader {
			return io.MultiReader(strings.NewReader(some), iotest.ErrReader(io.ErrUnexpectedEOF))
		}, io.ErrUnexpectedEOF},
	} {
		want := readOnce(c.r(), Options{})
		got := readParallel(c.r(), Options{}, 2)
		if !errors.Is(got.err, c.want) || got.err.Error() != want.err.Error() {
			t.Errorf("%s: %v, want %v", name, got.err, want.err)
		}
	}
	stop := errors.New("stop")
	_, err := ReadParallel(t.Context(), strings.NewReader(some+some), Options{}, 2, func() func(Entry) error {
		return func(e Entry) error {
			if e.Line > 100 {
				return fmt.Errorf("line %d: %w", e.Line, stop)
			}
			return nil
		}
	}, nil)
	if !errors.Is(err, stop) || err.Error() != "line 101: stop" {
		t.Errorf("an error from a sink: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = ReadParallel(ctx, strings.NewReader(some+some), Options{}, 2, func() func(Entry) error {
		return func(Entry) error { cancel(stop); return nil }
	}, nil)
	if !errors.Is(err, stop) {
		t.Errorf("its context ended: %v", err)
	}
}
