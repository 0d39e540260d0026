package segment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// resident is how much of a file's maps is in this process's memory, in bytes
// (proc_pid_smaps(5)). The sums of /proc/self/status are not exact, and are of the
// program's own pages, too.
func resident(t *testing.T, path string) (sum int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err) // a kernel without it
	}
	found, ours := false, false
	for line := range strings.Lines(string(maps)) {
		words := strings.Fields(line)
		if !strings.HasSuffix(words[0], ":") {
			ours = strings.HasSuffix(line, path+"\n")
			found = found || ours
		} else if ours && words[0] == "Rss:" {
			n, err := strconv.Atoi(words[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n << 10
		}
	}
	if !found {
		t.Fatalf("%s is not mapped", path)
	}
	return sum
}

// TestScanGivesBack walks through a segment that is several times as large as
// what a walk leaves behind in memory.
func TestScanGivesBack(t *testing.T) {
	key := &Key{1}
	b := NewBuilder(BuildOptions{Dir: t.TempDir(), Key: key})
	defer b.Abort()
	a := b.Adder()
	note := strings.Repeat("n", 2000)
	const entries = 60_000
	for i := range entries {
		if err := a.Add(Entry{Key: fmt.Sprintf("%d.example", i), Line: i + 1, Note: note + strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "segment")
	if _, err := b.Finish(t.Context(), path, Header{}); err != nil {
		t.Fatal(err)
	}
	s, err := mapPath(path, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.blocks) < 3*giveBackAfter {
		t.Fatalf("%d bytes of blocks are too few to see anything", len(s.blocks))
	}
	before := resident(t, path)
	for range 2 { // the second walk reads what the first gave back
		n, most := 0, 0
		if err := s.Scan(0, 1<<64-1, func(uint64, []byte) bool {
			if n++; n%(entries/10) == 0 {
				most = max(most, resident(t, path))
			}
			return true
		}); err != nil || n != entries {
			t.Fatalf("%d of %d keys, %v", n, entries, err)
		}
		if grown := most - before; grown > 2*giveBackAfter {
			t.Errorf("a walk through %d bytes has %d more resident meanwhile", len(s.blocks), grown)
		}
	}
	if grown := resident(t, path) - before; grown > 2*giveBackAfter {
		t.Errorf("a walk through %d bytes leaves %d more resident", len(s.blocks), grown)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
