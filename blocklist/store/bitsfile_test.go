package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"spamgate/internal/atomicfile"
)

// bitsAt returns the bitsFile of a path.
func bitsAt(path string) *bitsFile {
	return &bitsFile{tree: atomicfile.In(filepath.Dir(path)), name: filepath.Base(path)}
}

// What was saved is opened again, for nobody else to read, and nothing is left over.
func TestBitsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current.bits")
	b := bitsAt(path)
	if _, _, err := b.Open(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before anything was saved: %v", err)
	}
	for _, want := range []string{"first", "second"} {
		must(t, b.Save(func(w io.Writer) error { _, err := io.WriteString(w, want); return err }))
		r, file, err := b.Open()
		must(t, err)
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
		must(t, file.Close())
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm()&0o077 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
	fault := errors.New("fault")
	if err := b.Save(func(io.Writer) error { return fault }); !errors.Is(err, fault) {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if none := new(bitsFile); none.CanSave() {
		t.Error("there is no file, and it can be saved")
	}
}

// If the directory cannot be written, what is much goes to the directory for
// temporary files, and to save it is an error.
func TestBitsWithoutDirectory(t *testing.T) {
	b := bitsAt(filepath.Join(t.TempDir(), "gone", "current.bits"))
	for _, size := range []int{10, scratchMemory + 10} {
		scratch := b.Scratch()
		want := bytes.Repeat([]byte("0123456789"), size/10)
		for part := range slices.Chunk(want, 1000) {
			if _, err := scratch.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(scratch.Reader()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
		must(t, scratch.Close())
	}
	if err := b.Save(func(io.Writer) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Save: %v", err)
	}
}
