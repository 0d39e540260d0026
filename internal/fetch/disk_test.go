package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStateNotSaved wants a copy to be good although its state can't be kept.
func TestStateNotSaved(t *testing.T) {
	x := newFixture(t, send(listText, "ETag", `"1"`))
	if err := os.MkdirAll(filepath.Join(x.source.Copy+stateSuffix, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status := x.fetch(t); status.NotModified {
			t.Errorf("status %+v", status)
		}
	}
	x.wantCopy(t, listText)
	if n := x.log.count("state of a list's copy not saved"); n != 2 {
		t.Errorf("log: %s", &x.log)
	}
}

// TestDiskFull wants a copy that can't be written to leave the old one.
func TestDiskFull(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetch(t)
	before := x.files(t)
	d, err := newDraft(x.source.place())
	if err != nil {
		t.Fatal(err)
	}
	d.file.Close()
	if d.file.File, err = os.Open(x.source.Copy); err != nil { // not for writing: as full as it gets
		t.Fatal(err)
	}
	if err := x.fetcher.receive(context.Background(), x.source.withDefaults(), strings.NewReader(otherText), -1, d); !errors.Is(err, syscall.EBADF) {
		t.Errorf("error: %v", err)
	}
	d.discard()
	if after := x.files(t); len(after) != len(before) || after["copy"] != before["copy"] {
		t.Errorf("files: %v", after)
	}
}

// TestOwner wants what root fetches to belong to whom the directory belongs to.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const user, group = 54321, 54322
	x := newFixture(t, send(listText))
	top := filepath.Dir(filepath.Dir(filepath.Dir(x.source.Copy)))
	if err := os.Chown(top, user, group); err != nil {
		t.Fatal(err)
	}
	x.fetch(t)
	for _, path := range []string{filepath.Dir(filepath.Dir(x.source.Copy)), filepath.Dir(x.source.Copy), x.source.Copy, x.source.Copy + stateSuffix} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != user || st.Gid != group {
			t.Errorf("%s belongs to %d, %d", path, st.Uid, st.Gid)
		}
	}
}
