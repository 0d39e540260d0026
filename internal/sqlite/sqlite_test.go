package sqlite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// create returns a database with a table.
func create(t testing.TB) (*DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Exec("PRAGMA journal_mode=WAL; CREATE TABLE t (n INTEGER PRIMARY KEY, v)"); err != nil {
		t.Fatal(err)
	}
	return db, path
}

func prepare(t testing.TB, db *DB, sql string) *Stmt {
	t.Helper()
	s, err := db.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestValues(t *testing.T) {
	db, _ := create(t)
	insert, get := prepare(t, db, "INSERT INTO t (v) VALUES (?)"), prepare(t, db, "SELECT v FROM t WHERE n = ?")
	texts := []string{"", "a", "a\x00b\x00", "\u00fc\ufffd", strings.Repeat("x", 100_000), "short again"}
	for i, text := range texts {
		insert.BindText(1, text)
		if err := insert.Run(); err != nil {
			t.Fatal(err)
		}
		get.BindInt(1, int64(i+1))
		if found, err := get.Step(); !found || err != nil || get.Text(0) != text || get.Null(0) {
			t.Errorf("text %d: %.20q, %v, %v", i, get.Text(0), found, err)
		}
		get.Reset()
	}
	blob := []byte{0, 1, 255}
	insert.BindBlob(1, blob)
	if err := insert.Run(); err != nil {
		t.Fatal(err)
	}
	insert.BindNull(1)
	if err := insert.Run(); err != nil {
		t.Fatal(err)
	}
	get.BindInt(1, int64(len(texts)+1))
	if _, err := get.Step(); err != nil || !bytes.Equal(get.Blob(0), blob) {
		t.Errorf("blob: %v, %v", get.Blob(0), err)
	}
	get.Reset()
	get.BindInt(1, int64(len(texts)+2))
	if _, err := get.Step(); err != nil || !get.Null(0) || get.Text(0) != "" || get.Int(0) != 0 {
		t.Errorf("NULL: %v", err)
	}
	get.Reset()
	get.BindInt(1, -1)
	if found, err := get.Step(); found || err != nil {
		t.Errorf("no row: %v, %v", found, err)
	}
}

func TestWithin(t *testing.T) {
	db, path := create(t)
	failure := errors.New("no")
	add := func() error { return db.Exec("INSERT INTO t (v) VALUES (1)") }
	if err := db.Within("BEGIN", func() error { add(); return failure }); err != failure {
		t.Fatal(err)
	}
	if err := db.Within("BEGIN", add); err != nil {
		t.Fatal(err)
	}
	other, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if n, err := other.Int("SELECT count(*) FROM t"); n != 1 || err != nil {
		t.Errorf("%d rows, want the committed one: %v", n, err)
	}
}

func TestErrors(t *testing.T) {
	db, path := create(t)
	if err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	other, err := Open(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Exec("BEGIN IMMEDIATE"); !IsBusy(err) {
		t.Errorf("locked: %v", err)
	}
	reader, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := reader.Exec("INSERT INTO t (v) VALUES (1)"); !IsSystem(err) {
		t.Errorf("read only: %v", err)
	}
	if err := db.Exec("SELECT v FROM nowhere"); err == nil || IsBusy(err) || IsSystem(err) || IsDamaged(err) ||
		!strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no such table: %v", err)
	}
	dir := t.TempDir()
	text, link := filepath.Join(dir, "text"), filepath.Join(dir, "link")
	os.WriteFile(text, []byte(strings.Repeat("no database\n", 1000)), 0o600)
	bad, err := Open(text, false)
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if _, err := bad.Int("SELECT count(*) FROM sqlite_schema"); !IsDamaged(err) {
		t.Errorf("a text: %v", err)
	}
	os.Symlink(path, link)
	for _, path := range []string{link, filepath.Join(dir, "missing")} {
		if db, err := Open(path, true); err == nil {
			db.Close()
			t.Errorf("%s is open", path)
		} else if !IsSystem(err) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestTruncated truncates the file that SQLite maps: the process lives, and other databases work.
func TestTruncated(t *testing.T) {
	db, path := create(t)
	other, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Int("SELECT count(*) FROM t"); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path+"-shm", 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := other.Int("SELECT count(*) FROM t"); err != ErrFault {
			t.Error(err)
		}
		if err := db.Exec("INSERT INTO t (v) VALUES (1)"); err != ErrFault {
			t.Error(err)
		}
	}
	if db, err := Open(path, true); err != ErrFault {
		t.Error(db, err)
	}
	create(t)
}
