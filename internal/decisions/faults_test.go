package decisions

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/sqlite"
)

// childDir is the environment variable that makes TestChild write a history; childName is its name in ids.
const (
	childDir  = "SPAMGATE_HISTORY_CHILD"
	childName = "SPAMGATE_HISTORY_CHILD_NAME"
)

// TestChild is a process that TestKilled kills: it records rows, and prints how many are committed.
func TestChild(t *testing.T) {
	dir, name := os.Getenv(childDir), os.Getenv(childName)
	if dir == "" {
		t.Skip("runs for TestKilled")
	}
	w, err := Open(Options{Dir: dir, Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 30, share: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; ; fmt.Println("committed", n) {
		for range 1 + rand.IntN(300) {
			d := refusal(n, time.Now())
			d.ID = fmt.Sprintf("%s-%d", name, n)
			w.Record(d)
			n++
		}
		if err := w.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// startChild starts a process that writes to a directory, and returns it with what it prints.
func startChild(t *testing.T, dir, name string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestChild$")
	child.Env = append(os.Environ(), childDir+"="+dir, childName+"="+name)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Process.Kill(); child.Wait() })
	return child, bufio.NewScanner(out)
}

// committed reads a line of a child.
func committed(t *testing.T, s *bufio.Scanner) int {
	t.Helper()
	for s.Scan() {
		if text, ok := strings.CutPrefix(s.Text(), "committed "); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		t.Log(s.Text())
	}
	t.Fatal("a child has ended")
	return 0
}

// rounds returns how often a long proof is repeated.
func rounds(few, many int) int {
	if os.Getenv("SPAMGATE_E2E_FULL") != "" {
		return many
	}
	return few
}

// TestKilled kills two processes that write to one history at a time, again and again, while this one reads. What
// they had committed is there, and no file is damaged.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "decisions")
	r := NewReader(dir)
	defer r.Close()
	all := 0
	for round := range rounds(3, 50) {
		var children [2]*exec.Cmd
		var outputs [2]*bufio.Scanner
		for i := range children {
			children[i], outputs[i] = startChild(t, dir, fmt.Sprint("R", round, "C", i))
		}
		var sure [2]int
		for range 1 + rand.IntN(10) {
			i := rand.IntN(2)
			sure[i] = committed(t, outputs[i])
			if _, err := r.Find(t.Context(), Query{Recipient: "u7@example.net"}); err != nil {
				t.Fatal(err)
			}
		}
		for i, child := range children {
			child.Process.Signal(syscall.SIGKILL)
			for outputs[i].Scan() { // what it had said before
				if text, ok := strings.CutPrefix(outputs[i].Text(), "committed "); ok {
					sure[i], _ = strconv.Atoi(text)
				}
			}
			child.Wait()
		}
		for i, n := range sure {
			if n == 0 {
				continue
			}
			for _, k := range []int{0, n / 2, n - 1} {
				q := Query{ID: fmt.Sprintf("R%dC%d-%d", round, i, k)}
				if p, err := r.Find(t.Context(), q); err != nil || len(p.Decisions) != 1 {
					t.Errorf("%s, of %d: %d rows, %v", q.ID, n, len(p.Decisions), err)
				}
			}
			all += n
		}
	}
	found := 0
	if err := r.Each(t.Context(), Query{}, func(Decision) error { found++; return nil }); err != nil || found < all {
		t.Errorf("%d rows of %d: %v", found, all, err)
	}
	checkFiles(t, dir)
}

// checkFiles checks all databases of a history.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		db, err := sqlite.Open(name, false)
		if err != nil {
			t.Fatal(err)
		}
		s, err := db.Prepare("PRAGMA integrity_check")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Step(); err != nil || s.Text(0) != "ok" {
			t.Errorf("%s: %s, %v", name, s.Text(0), err)
		}
		s.Close()
		db.Close()
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v: %v", name, info.Mode(), err)
		}
	}
}

// TestDirectoryRemoved removes the directory under a history, which makes it again.
func TestDirectoryRemoved(t *testing.T) {
	w, r, dir := open(t, nil)
	now := time.Now()
	for i := range 3 {
		write(t, w, refusal(i, now))
		if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 1 {
			t.Fatalf("%d: %v, %v", i, p, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 0 || p.Reach != nil {
			t.Fatalf("%d, removed: %v, %v", i, p, err)
		}
	}
	write(t, w, refusal(9, now))
	totals, err := r.Totals(t.Context(), now.Add(-time.Hour), now.Add(time.Hour))
	if err != nil || len(totals) != 1 || totals[0].Count != 1 {
		t.Errorf("totals: %v, %v", totals, err)
	}
}

// TestUnusableDirectory records although the directory cannot be made, and until it can.
func TestUnusableDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "decisions")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.Record(refusal(1, time.Now()))
	if err := w.Sync(t.Context()); err == nil || w.Stats().Err == "" {
		t.Errorf("%v, %+v", err, w.Stats())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	for w.Sync(t.Context()) != nil {
	}
	if s := w.Stats(); s.Rows != 1 || s.Err != "" || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
	link := filepath.Join(t.TempDir(), "decisions")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if w, err := Open(Options{Dir: link, Keep: time.Hour, MaxBytes: 1 << 30}); err == nil {
		w.Close()
		t.Error("a link is followed")
	}
}

// TestDamaged damages the open file: the next one is used, and the damaged one does not end searches.
func TestDamaged(t *testing.T) {
	w, r, dir := open(t, nil)
	now := time.Now()
	for i := range 2000 {
		w.Record(refusal(i, now))
	}
	write(t, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "2*.db"))
	f, err := os.OpenFile(names[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := []byte(strings.Repeat("damage", 5000))
	if _, err := f.WriteAt(junk, 2*4096); err != nil {
		t.Fatal(err)
	}
	f.Close()
	w, err = Open(Options{Dir: dir, Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.Record(refusal(9999, now.Add(time.Second)))
	for w.Sync(t.Context()) != nil {
	}
	if p, err := r.Find(t.Context(), Query{ID: "ID009999"}); err != nil || len(p.Decisions) != 1 {
		t.Errorf("%v, %v, %+v", p, err, w.Stats())
	}
}
