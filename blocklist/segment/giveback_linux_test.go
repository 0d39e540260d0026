package segment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// residentFile is the resident memory of this process that files stand behind, in
// bytes (proc(5): RssFile).
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no RssFile in /proc/self/status")
	return 0
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
	path := filepath.Join(t.TempDir(), "segment")
	if _, err := b.Finish(t.Context(), path, Header{}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, key)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.blocks) < 3*giveBackAfter {
		t.Fatalf("%d bytes of blocks are too few to see anything", len(s.blocks))
	}
	before := residentFile(t)
	for range 2 { // the second walk reads what the first gave back
		n := 0
		if err := s.Scan(0, 1<<64-1, func(uint64, []byte) bool { n++; return true }); err != nil || n != entries {
			t.Fatalf("%d of %d keys, %v", n, entries, err)
		}
	}
	if grown := residentFile(t) - before; grown > 2*giveBackAfter {
		t.Errorf("a walk through %d bytes leaves %d more resident", len(s.blocks), grown)
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
