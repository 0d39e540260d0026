package decisions

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/sqlite"
)

// TestNameTaken has something else where the first file would be made: the next name is used, and what is there
// stays as it is.
func TestNameTaken(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a directory":   func(path string) error { return os.Mkdir(path, 0o700) },
		"a link":        func(path string) error { return os.Symlink("elsewhere", path) },
		"a pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"random bytes":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("noise", 2000)), 0o600) },
		"other tables":  func(path string) error { return makeDB(path, "CREATE TABLE decisions (a)") },
		"no tables":     func(path string) error { return makeDB(path, "PRAGMA user_version = 1") },
		"a newer one":   func(path string) error { return makeDB(path, "PRAGMA user_version = 2") },
		"an empty file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		dir := filepath.Join(t.TempDir(), "decisions")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		path := filepath.Join(dir, file{day: now.UTC().Format(dayFormat), number: 1}.name())
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		w, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		w.Record(refusal(1, now))
		if err := w.Sync(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.Close()
		r := NewReader(dir)
		if page, err := r.Find(t.Context(), Query{Address: "r1@example.net"}); err != nil {
			t.Errorf("%s: %v, %v", what, page, err)
		}
		if _, err := r.Top(t.Context(), TopLists, time.Time{}, 1, Query{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		r.Close()
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s: %v, %v", what, after, err)
		}
	}
}

// TestNoFile lets each step of making a file fail: the history stands still, and the process goes on.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	f := newFolder(filepath.Join(dir, "decisions"))
	if err := os.Mkdir(f.path(""), 0o700); err != nil {
		t.Fatal(err)
	}
	existing := file{day: "2026-11-23", number: 1}
	if w, err := f.openWriteFile(existing, false); err == nil || w != nil {
		t.Errorf("a missing file: %v, %v", w, err)
	}
	if err := os.Mkdir(f.path(existing.name()), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, create := range []bool{false, true} {
		if w, err := f.openWriteFile(existing, create); err == nil || w != nil {
			t.Errorf("a directory: %v, %v", w, err)
		}
	}
}

// TestDamagedTotals says which file is damaged and what to do. Decisions are written all the same.
func TestDamagedTotals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "decisions")
	path := filepath.Join(dir, totalsName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("noise", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	w.Record(refusal(1, time.Now()))
	if err := w.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("%v", err)
	}
	if s := w.Stats(); s.Rows != 1 {
		t.Errorf("%+v", s)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for w.Sync(t.Context()) != nil {
	}
	if s := w.Stats(); s.Err != "" {
		t.Errorf("%+v", s)
	}
}

// makeDB makes a database.
func makeDB(path, sql string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	db, err := sqlite.Open(path, false)
	if err != nil {
		return err
	}
	return errors.Join(db.Exec(sql), db.Close())
}

// TestTruncatedBetween truncates the open file, as who needs room does: what comes afterwards is found.
func TestTruncatedBetween(t *testing.T) {
	for _, size := range []int64{0, 5000} {
		w, r, dir := open(t, nil)
		now := time.Now()
		for i := range 3000 {
			w.Record(refusal(i, now))
		}
		write(t, w)
		w.Close() // which brings the rows into the file
		w, err := Open(Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, refusal(3000, now))
		names, _ := filepath.Glob(filepath.Join(dir, "2*.db"))
		if err := os.Truncate(names[0], size); err != nil {
			t.Fatal(err)
		}
		for i := 3001; i < 3004; i++ {
			w.Record(refusal(i, now))
			for w.Sync(t.Context()) != nil {
			}
		}
		if p, err := r.Find(t.Context(), Query{ID: "ID003003"}); err != nil || len(p.Decisions) != 1 {
			t.Errorf("to %d bytes: %v, %v, %+v", size, p, err, w.Stats())
		}
		w.Close()
	}
}
