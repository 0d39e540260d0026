package segment

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/atomicfile"

	"golang.org/x/sys/unix"
)

// TestCutWhileMapped cuts the file of a segment that is in use.
func TestCutWhileMapped(t *testing.T) {
	entries := randomEntries(rand.New(rand.NewPCG(9, 10)), 20_000)
	path := filepath.Join(t.TempDir(), "list.seg")
	build(t, path, BuildOptions{}, 1, entries)
	want := plain(entries)
	for _, verified := range []bool{false, true} { // the fault is met by the checksum, or behind it
		t.Run(fmt.Sprint("verified=", verified), func(t *testing.T) {
			cut := filepath.Join(t.TempDir(), "cut.seg")
			if err := copyFile(cut, path); err != nil {
				t.Fatal(err)
			}
			s, err := mapPath(cut, &testKey)
			if err != nil {
				t.Fatal(err)
			}
			if verified {
				if err := s.Verify(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Truncate(cut, s.Size()/8); err != nil {
				t.Fatal(err)
			}
			damaged := 0
			for key, e := range want {
				got, ok, err := s.Lookup(testKey.Hash([]byte(key)), []byte(key))
				switch {
				case errors.Is(err, ErrDamaged) && strings.Contains(err.Error(), cut):
					damaged++
				case err != nil || ok && got != e:
					t.Fatalf("Lookup(%.40q) = %.300v, %v, %v", key, got, ok, err)
				}
				if _, again := s.Has(testKey.Hash([]byte(key)), []byte(key)); (err == nil) != (again == nil) || err != nil && !errors.Is(again, ErrDamaged) {
					t.Fatalf("Has(%.40q): %v, and Lookup %v", key, again, err)
				}
			}
			if damaged == 0 {
				t.Error("no lookup met the fault")
			}
			for name, err := range map[string]error{
				"Verify":  s.Verify(t.Context()),
				"Records": s.Records(func(Record) bool { return true }),
				"Scan":    s.Scan(0, math.MaxUint64, func(uint64, []byte) bool { return true }),
			} {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if debug.SetPanicOnFault(false) {
				t.Error("the setting of faults is not restored")
			}
		})
	}
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// The tests below run this test's program once more, as a child that builds in
// this directory.
const (
	childDir   = "SEGMENT_TEST_DIR"
	childLimit = "SEGMENT_TEST_LIMIT" // the largest file that it may write
)

// child returns the command that runs a test in a process of its own.
func child(t *testing.T, test, dir string, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	c.Env = append(os.Environ(), append(env, childDir+"="+dir)...)
	return c
}

// childEntries is what children build from; it needs a temporary file.
func childEntries() []Entry {
	return randomEntries(rand.New(rand.NewPCG(11, 12)), 5000)
}

// TestNoSpaceLeft builds where no file may be larger than a limit, which is met
// in the temporary file, in the blocks, or at the end.
func TestNoSpaceLeft(t *testing.T) {
	whole := build(t, "", BuildOptions{}, 1, childEntries()).Size()
	for _, limit := range []int64{0, 1, 4096, whole / 2, whole - 1, 1 << 40} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "list.seg")
			old := build(t, path, BuildOptions{}, 1, smallEntries())
			output, err := child(t, "TestChildWithoutSpace", dir, childLimit+"="+strconv.FormatInt(limit, 10)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			if got := names(t, dir); len(got) != 1 {
				t.Errorf("left behind: %q", got)
			}
			segment, err := mapPath(path, &testKey)
			if err != nil {
				t.Fatal(err)
			}
			if kept := segment.Digest() == old.Digest(); kept != (limit < whole) {
				t.Errorf("the old file is there: %v", kept)
			}
		})
	}
}

func TestChildWithoutSpace(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("a part of TestNoSpaceLeft")
	}
	var limit unix.Rlimit
	if _, err := fmt.Sscan(os.Getenv(childLimit), &limit.Cur); err != nil { // of another type on each system
		t.Fatal(err)
	}
	limit.Max = limit.Cur
	signal.Ignore(syscall.SIGXFSZ) // writing fails with EFBIG then
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(BuildOptions{Dir: dir, Key: &testKey, Memory: 1})
	defer b.Abort()
	a := b.Adder()
	for _, e := range childEntries() {
		if err := a.Add(e); err != nil {
			t.Log(err) // and the next fails as well
		}
	}
	if _, err := b.Finish(t.Context(), filepath.Join(dir, "list.seg"), Header{}); err != nil && !errors.Is(err, unix.EFBIG) {
		t.Errorf("the error is %v, want %v", err, unix.EFBIG)
	}
}

// TestKilled kills processes that build: the file is whole each time, the old one
// or the new.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "list.seg")
	build(t, path, BuildOptions{}, 1, childEntries())
	r := rand.New(rand.NewPCG(13, 14))
	for range 40 {
		c := child(t, "TestChildThatIsKilled", dir)
		output, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// The child is at the third of its builds, and is killed somewhere
		// within the time that a build takes.
		if _, err := bufio.NewReader(output).ReadString('3'); err != nil {
			t.Fatalf("the child ended by itself: %v", err)
		}
		<-time.After(time.Duration(r.Int64N(int64(15 * time.Millisecond))))
		c.Process.Kill()
		c.Wait()
		s, err := mapPath(path, &testKey)
		if err == nil {
			err = s.Verify(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testSweep(t, dir)
}

func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("a part of TestKilled")
	}
	entries := childEntries()
	for i := 1; ; i++ {
		fmt.Println(i)
		b := NewBuilder(BuildOptions{Dir: dir, Key: &testKey, Memory: 1})
		a := b.Adder()
		for _, e := range entries[i%100:] {
			if err := a.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Finish(t.Context(), filepath.Join(dir, "list.seg"), Header{}); err != nil {
			t.Fatal(err)
		}
	}
}

// testSweep sees that the temporary files in a directory are told from others by
// their names.
func testSweep(t *testing.T, dir string) {
	long := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".segment-1", ".segment-2", ".segment-young", ".other-3", "list.bits"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".segment-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(t, dir) {
		if name == ".segment-young" {
			continue
		}
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.RemoveStale(dir, TemporaryPrefix, time.Hour); err != nil {
		t.Fatal(err)
	}
	want := []string{".other-3", ".segment-dir", ".segment-young", "list.bits", "list.seg"}
	if got := names(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after a sweep there are %q, want %q", got, want)
	}
}

// TestReleased sees that segments that nothing refers to give back their maps
// and descriptors.
func TestReleased(t *testing.T) {
	if _, err := os.Stat("/proc/self/maps"); err != nil {
		t.Skip("needs /proc")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "list.seg")
	before := len(names(t, "/proc/self/fd"))
	for range 20 {
		build(t, path, BuildOptions{Memory: 1}, 1, smallEntries())
	}
	if after := len(names(t, "/proc/self/fd")); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	deadline := time.Now().Add(time.Minute)
	for mapped(t, dir) {
		if time.Now().After(deadline) {
			t.Fatal("a file is still mapped")
		}
		collect()
	}
}

func mapped(t *testing.T, dir string) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(maps, []byte(dir))
}
