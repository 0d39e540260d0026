package partial

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTornLine cuts the file off anywhere, like a killed process or a loss of power. The
// lines before and later lines must be read.
func TestTornLine(t *testing.T) {
	path := storePath(t)
	s := open(t, path, Options{})
	sum, two, three := sumOf(1), sumOf(2), sumOf(3)
	settle(t, s, sum, "b delivered")
	settle(t, s, two, "b refused x")
	whole := readFile(t, path)
	firstEnd := len(firstLine) + strings.IndexByte(whole[len(firstLine):], '\n') + 1
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		var entries []Entry
		if cut >= firstEnd {
			entries = append(entries, has(sum))
		}
		if cut == len(whole) {
			entries = append(entries, refused(two))
		}
		s := Open(path, Options{})
		want(t, s, "b", entries...)
		settle(t, s, three, "b pending")
		entries = append(entries, pending(three))
		want(t, s, "b", entries...)
		s.Close()
		if cut == firstEnd-1 || cut == len(whole)-1 {
			continue // the line lacked its end alone, and has it by now
		}
		s = Open(path, Options{})
		want(t, s, "b", entries...)
		s.Close()
	}
}

// TestDamagedLine wants damage in one line to leave the others readable.
func TestDamagedLine(t *testing.T) {
	path := storePath(t)
	s := open(t, path, Options{})
	for i := range 3 {
		settle(t, s, sumOf(i), "b delivered")
	}
	whole := []byte(readFile(t, path))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	start := len(lines[0]) + len(lines[1])
	for pos := start; pos < start+len(lines[2])-1; pos++ {
		damaged := bytes.Clone(whole)
		damaged[pos] ^= 0x01
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s := Open(path, Options{})
		want(t, s, "b", has(sumOf(0)), has(sumOf(2)))
		s.Close()
	}
	for name, text := range map[string]string{
		"nothing":       "",
		"no file of it": strings.Repeat("x", 1<<18) + "\n" + string(whole),
		"binary":        "\x00\xff\n\n \n" + string(whole),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Open(path, Options{})
		if n := s.Len(); n != 3 && text != "" {
			t.Errorf("%s: %d entries", name, n)
		}
		settle(t, s, sumOf(9), "c delivered")
		want(t, s, "c", has(sumOf(9)))
		s.Close()
	}
}

// TestTwoStores wants one process of a handover to know at once what the other has
// settled, also after either has rewritten the file.
func TestTwoStores(t *testing.T) {
	path := storePath(t)
	old := open(t, path, Options{})
	settle(t, old, sumOf(0), "b delivered")
	successor := open(t, path, Options{})
	for i := 1; i <= 3; i++ {
		m := sumOf(i)
		settle(t, old, m, "c delivered", "d pending")
		want(t, successor, "c", has(m))
		settle(t, successor, m, "d delivered")
		want(t, old, "d", has(m))
		settle(t, successor, m, "c settled")
		want(t, old, "c")
		rewrite(t, []*Store{old, successor}[i%2])
		settle(t, old, m, "d settled")
		want(t, successor, "d")
		want(t, successor, "b", has(sumOf(0)))
		want(t, old, "b", has(sumOf(0)))
	}

	// The file is removed: what is known is not forgotten, and is there again with
	// the next entry.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want(t, old, "b", has(sumOf(0)))
	settle(t, successor, sumOf(5), "c delivered")
	want(t, old, "b", has(sumOf(0)))
	want(t, old, "c", has(sumOf(5)))
	want(t, open(t, path, Options{}), "b", has(sumOf(0)))
}

// rewrite rewrites the file, as a Store does when it has grown.
func rewrite(t testing.TB, s *Store) {
	t.Helper()
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	unlock, err := s.file.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := s.catchUp(); err != nil {
		t.Fatal(err)
	}
	if err := s.rewrite(); err != nil {
		t.Fatal(err)
	}
}

// TestReplacedTwice has one process replace the file. Before it has read the new one,
// another settles and a third replaces it again. The first one must not lose that when it
// writes next.
func TestReplacedTwice(t *testing.T) {
	path := storePath(t)
	store, two, three := open(t, path, Options{}), open(t, path, Options{}), open(t, path, Options{})
	m := sumOf(1)
	settle(t, store, m, "b delivered", "gone pending")

	store.file.mu.Lock()
	unlock, err := store.begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.replace(); err != nil {
		t.Fatal(err)
	}
	settle(t, two, m, "c delivered", "gone settled")
	rewrite(t, three)
	if err := store.catchUp(); err != nil {
		t.Fatal(err)
	}
	unlock()
	store.file.mu.Unlock()

	rewrite(t, store)
	for _, s := range []*Store{store, two, three, open(t, path, Options{})} {
		want(t, s, "b", has(m))
		want(t, s, "c", has(m))
		want(t, s, "gone")
	}
}

// TestManyStores has several processes settle at once and rewrite the file now and then.
// They must lose nothing and resurrect nothing.
func TestManyStores(t *testing.T) {
	path := storePath(t)
	patient := Options{lockWait: time.Minute}
	stores := []*Store{open(t, path, patient), open(t, path, patient), open(t, path, patient)}
	const each = 40
	var running sync.WaitGroup
	for i, s := range stores {
		running.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for n := range each {
				to := fmt.Sprintf("r%d-%d", i, n)
				if err := trySettle(s, sumOf(n), to+" delivered", "gone-"+to+" pending"); err != nil {
					t.Error(err)
				}
				if err := trySettle(s, sumOf(n), "gone-"+to+" settled"); err != nil {
					t.Error(err)
				}
				if rng.IntN(2) == 0 {
					rewrite(t, s)
				}
			}
		})
	}
	running.Wait()
	for _, s := range append(stores, open(t, path, Options{})) {
		for i := range stores {
			for n := range each {
				want(t, s, fmt.Sprintf("r%d-%d", i, n), has(sumOf(n)))
			}
		}
		if s.Len() != len(stores)*each {
			t.Errorf("%d entries, want %d", s.Len(), len(stores)*each)
		}
	}
}
