package fleet

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSequence: a new version follows what this gate has and what the fleet has, or others would
// not take it.
func TestSequence(t *testing.T) {
	l := &list{m: &Member{}}
	v := func(sequence uint64, sha string) *Version { return &Version{Sequence: sequence, SHA256: sha} }
	for _, c := range []struct {
		applied, remote *Version
		want            uint64
		base            string
	}{
		{nil, nil, 1, ""},
		{v(3, "a"), nil, 4, "a"},
		{v(3, "a"), v(2, "b"), 4, "a"},
		{v(3, "a"), v(3, "a"), 4, "a"},
		{v(3, "a"), v(4, "b"), 5, "b"},
		{v(3, "a"), v(5, "b"), 6, "b"},
		{nil, v(1, "b"), 2, "b"},
	} {
		if got := l.newVersion(c.applied, c.remote, "new", 9); got.Sequence != c.want || got.Base != c.base {
			t.Errorf("after %v and %v: %d from %q, want %d from %q", c.applied, c.remote, got.Sequence, got.Base, c.want, c.base)
		}
	}
}

// TestUnmoved: a file that somebody has edited since the gate read it is not replaced by what the
// fleet has.
func TestUnmoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list")
	write := func(text string, ago time.Duration) *os.File {
		t.Helper()
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil {
			err = os.Chtimes(path, time.Time{}, time.Unix(1e9, 0).Add(-ago))
		}
		file, openErr := os.Open(path)
		if err = errors.Join(err, openErr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	l := &list{}
	file := write("a.example\n", time.Hour)
	sum, err := l.digestOf(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.unmoved(file, sum); err != nil {
		t.Error(err)
	}
	if err := l.unmoved(write("aa.example\n", time.Hour), sum); !errors.Is(err, errMoved) {
		t.Errorf("longer: %v", err)
	}
	if err := l.unmoved(write("b.example\n", 0), sum); !errors.Is(err, errMoved) {
		t.Errorf("as long: %v", err)
	}
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if err := l.unmoved(none, sum); !errors.Is(err, errMoved) {
		t.Errorf("removed: %v", err)
	}
}
