//go:build unix

package store

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/blocklist/verdict"
)

// childDir tells a process that it is a part of a test, and where it works.
const childDir = "SPAMGATE_BLOCKLIST_CHILD"

// child is this program, doing one test in a directory.
func child(t *testing.T, test, dir string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	c.Env = append(os.Environ(), childDir+"="+dir)
	return c
}

// childConfig is of a list and a state directory in the directory of a child.
func childConfig(dir string) (c Config, path string) {
	path = filepath.Join(dir, "spam.txt")
	c = fast(blockList("spam", path))
	c.StateDir = filepath.Join(dir, "state")
	c.History = 2
	return c, path
}

// Processes are killed at random points while they build and swap: a start finds
// a version each time, whole, and nothing of the others.
func TestKilled(t *testing.T) {
	kills := 20
	if os.Getenv("SPAMGATE_E2E_FULL") == "1" {
		kills = 200
	}
	dir := inDir(t, "")
	c, path := childConfig(dir)
	write(t, path, versionText(0))
	once(t, c)
	r := rand.New(rand.NewPCG(9, 10))
	for range kills {
		killChild(t, dir, 1+r.IntN(12))
		must(t, os.Rename(path, path+".away"))
		s := openStill(t, c)
		if l := s.Set().Stats().Lists[0]; !l.LastGood || l.Entries != rewrittenEntries {
			t.Fatalf("%+v", l)
		}
		versionIn(t, s.Set())
		must(t, s.Close())
		must(t, os.Rename(path+".away", path))
		if left, err := os.ReadDir(filepath.Join(c.StateDir, workName)); err != nil || len(left) > 0 {
			t.Fatalf("left: %v, %v", left, err)
		}
	}
	if _, err := Versions(c.StateDir, "spam"); err != nil {
		t.Error(err)
	}
}

// killChild kills a child after so many of its dots.
func killChild(t *testing.T, dir string, dots int) {
	t.Helper()
	c := child(t, "TestChildThatIsKilled", dir)
	output, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	defer c.Wait()
	defer c.Process.Kill()
	for in := bufio.NewReader(output); dots > 0; {
		b, err := in.ReadByte()
		if err != nil {
			t.Fatalf("the child ended by itself: %v", err)
		}
		if b == '.' {
			dots--
		}
	}
}

// The child is killed somewhere between two dots: one is written at each look at
// the context, of which reading a list has several.
func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("a part of TestKilled")
	}
	c, path := childConfig(dir)
	s := openStill(t, c)
	for n := 1; ; n++ {
		// Not in place: half of a list that its writer was killed over is a list.
		must(t, os.Rename(write(t, path+".new", versionText(n)), path))
		ctx := meddler{context.Background(), func() { os.Stdout.Write([]byte(".")) }}
		if _, err := s.look(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// Where there is no space left in the state directory the list goes live all the
// same, and the next start finds what was stored before.
func TestNoSpaceLeft(t *testing.T) {
	dir := inDir(t, "")
	c, path := childConfig(dir)
	write(t, path, "example.com\n")
	once(t, c)
	before := tree(t, c.StateDir)
	write(t, path, manyLines(20_000, 0))
	if output, err := child(t, "TestChildWithoutSpace", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	after := slices.DeleteFunc(tree(t, c.StateDir), func(p string) bool { return strings.Contains(p, stampsName) })
	before = slices.DeleteFunc(before, func(p string) bool { return strings.Contains(p, stampsName) })
	if !slices.Equal(before, after) {
		t.Errorf("%q, before %q", after, before)
	}
	must(t, os.Remove(path))
	if s := openStill(t, c); listed(t, s.Set(), "u@example.com") != verdict.Reject {
		t.Error("the stored version is gone")
	}
}

func TestChildWithoutSpace(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("a part of TestNoSpaceLeft")
	}
	signal.Ignore(syscall.SIGXFSZ) // writing fails with EFBIG then
	// Neither the index fits, nor the list when compressed for the history, of some 9 kB.
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4000, Max: 4000}); err != nil {
		t.Fatal(err)
	}
	c, _ := childConfig(dir)
	c.Lists[0].MaxGrowth = -1
	var log logBuffer
	c.Logger = log.logger()
	s := openStill(t, c)
	set, err := rescan(t, s)
	if err != nil || listed(t, set, "u@host19999.example") != verdict.Reject {
		t.Errorf("%v, %+v", err, set.Stats().Lists[0])
	}
	s.running.Wait()
	must(t, s.Close())
	for _, message := range []string{"state directory unusable", "version not kept"} {
		if lines := log.lines(message); len(lines) != 1 || !strings.Contains(lines[0], unix.EFBIG.Error()) {
			t.Errorf("log: %s", log.text.String())
		}
	}
}
