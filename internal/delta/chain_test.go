package delta

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func scratch(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "scratch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// chained returns the file that a chain has.
func chained(t testing.TB, c *Chain, base string) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Write(&out, strings.NewReader(base)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestChain makes chains of random changes: each has the file that the last delta makes.
func TestChain(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		base := lines(0, r.IntN(2000))
		c := NewChain(int64(len(base)), sha256.Sum256([]byte(base)), scratch(t))
		for now, i := base, 0; i < 12; i++ {
			all := strings.SplitAfter(now, "\n")
			for range r.IntN(20) {
				at := r.IntN(len(all))
				switch r.IntN(3) {
				case 0:
					all = slices.Delete(all, at, min(len(all)-1, at+r.IntN(100)))
				case 1:
					all = slices.Insert(all, at, lines(1e6+i, 1e6+i+r.IntN(60)))
				case 2:
					all = append(all, slices.Clone(all[at:min(len(all), at+r.IntN(50))])...)
				}
				if len(all) == 0 {
					all = []string{"last\n"}
				}
			}
			next := strings.Join(all, "")
			d, _ := made(t, now, next)
			if err := c.Add(bytes.NewReader(d), 1<<20); err != nil {
				t.Fatal(err)
			}
			if got := chained(t, c, base); got != next {
				t.Fatalf("seed %d, delta %d: another file of %d bytes, not %d", seed, i, len(got), len(next))
			}
			now = next
		}
	}
}

// TestChainRefuses adds deltas that are wrong or too large to a chain, which stays as it was.
func TestChainRefuses(t *testing.T) {
	base, next := lines(0, 1000), lines(0, 1000)+lines(5000, 6000)
	good, _ := made(t, base, next)
	again, _ := made(t, next, base+lines(7000, 8000))
	c := NewChain(int64(len(base)), sha256.Sum256([]byte(base)), scratch(t))
	for name, try := range map[string]struct {
		delta []byte
		max   int
		want  error
	}{
		"of another file": {again, 1 << 20, ErrBase},
		"too large":       {good, len(next) - 1, ErrTooLarge},
		"cut off":         {good[:len(good)-5], 1 << 20, ErrDamaged},
		"no delta":        {[]byte("one@example.net\n"), 1 << 20, ErrDamaged},
	} {
		if err := c.Add(bytes.NewReader(try.delta), int64(try.max)); !errors.Is(err, try.want) {
			t.Errorf("%s: %v", name, err)
		}
		if chained(t, c, base) != base {
			t.Fatalf("%s: the chain has changed", name)
		}
	}
	if err := c.Add(bytes.NewReader(good), 1<<20); err != nil || chained(t, c, base) != next {
		t.Fatal(err)
	}
	if err := c.Add(bytes.NewReader(again), 1<<20); err != nil || chained(t, c, base) != base+lines(7000, 8000) {
		t.Fatal(err)
	}
}

// TestChainLong adds deltas until the chain is too long: it has what it had before then.
func TestChainLong(t *testing.T) {
	file := func(i int) string { return lines(1000*i, 1000*i+1000) }
	c := NewChain(int64(len(file(0))), sha256.Sum256([]byte(file(0))), scratch(t))
	for i := 1; ; i++ {
		if i == 100 {
			t.Fatal("never too long")
		}
		d, _ := made(t, file(i-1), file(i))
		err := c.Add(bytes.NewReader(d), 32<<10)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrLong) || chained(t, c, file(0)) != file(i-1) {
			t.Errorf("after %d deltas: %v", i-1, err)
		}
		break
	}
	e := &extending{chain: c, pieces: make([]piece, maxPieces)}
	if err := e.add(50, 1); !errors.Is(err, ErrLong) {
		t.Errorf("too many pieces: %v", err)
	}
}

// FuzzChain adds a delta from anywhere to a chain that has one: it makes what Apply makes, or
// is an error.
func FuzzChain(f *testing.F) {
	base, next := lines(0, 20), lines(3, 12)+"x\n"+lines(0, 5)
	var first, second bytes.Buffer
	if _, err := Write(&first, strings.NewReader(base), strings.NewReader(next)); err != nil {
		f.Fatal(err)
	}
	if _, err := Write(&second, strings.NewReader(next), strings.NewReader(lines(4, 30))); err != nil {
		f.Fatal(err)
	}
	f.Add(second.Bytes())
	f.Fuzz(func(t *testing.T, delta []byte) {
		c := NewChain(int64(len(base)), sha256.Sum256([]byte(base)), scratch(t))
		if err := c.Add(bytes.NewReader(first.Bytes()), 1<<16); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		wrong := Apply(&want, strings.NewReader(next), bytes.NewReader(delta), 1<<16)
		err := c.Add(bytes.NewReader(delta), 1<<16)
		got := chained(t, c, base)
		switch {
		case err != nil && wrong == nil:
			t.Errorf("%v, although it can be applied", err)
		case err != nil && got != next:
			t.Error("the chain has changed")
		case wrong == nil && got != want.String():
			t.Error("another file than Apply makes")
		case len(got) > 1<<16:
			t.Error(fmt.Sprint(len(got), " bytes"))
		}
	})
}
