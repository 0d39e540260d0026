package listedit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func replaceBy(content string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(content), nil }
}

func TestEdit(t *testing.T) {
	path := writeFile(t, "old\n")
	change, err := editText(t.Context(), path, func(old []byte) ([]byte, error) {
		return append(old, "new\n"...), nil
	}, Options{})
	if err != nil || !change.Changed || change.Size != 8 {
		t.Fatalf("change %+v, error %v", change, err)
	}
	if got := readFile(t, path); got != "old\nnew\n" {
		t.Errorf("the file holds %q", got)
	}
	if more := others(t, path); more != nil {
		t.Errorf("left beside it: %q", more)
	}
}

func TestNothingToChange(t *testing.T) {
	path := writeFile(t, "old\n")
	before, _ := os.Stat(path)
	change, err := writeText(t.Context(), path, []byte("old\n"), Options{})
	after, _ := os.Stat(path)
	if err != nil || change.Changed || !os.SameFile(before, after) {
		t.Errorf("change %+v, error %v, same file %v", change, err, os.SameFile(before, after))
	}
}

func TestDryRun(t *testing.T) {
	path := writeFile(t, "old\n")
	log := &Log{Dir: t.TempDir()}
	change, err := editText(t.Context(), path, replaceBy("new"), Options{DryRun: true, Log: log, Record: NewRecord("add", "l", path)})
	if err != nil || !change.Changed || change.Size != 3 {
		t.Errorf("change %+v, error %v", change, err)
	}
	if got := readFile(t, path); got != "old\n" {
		t.Errorf("the file holds %q", got)
	}
	if more := others(t, filepath.Join(log.Dir, "none")); more != nil {
		t.Errorf("logged: %q", more)
	}
}

// TestKeeps tells that mode, owner, group and links stay.
func TestKeeps(t *testing.T) {
	path := writeFile(t, "old\n")
	const mode = 0o604
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 4711, 4712
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link.txt")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	change, err := editText(t.Context(), link, replaceBy("new\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if change.File != path {
		t.Errorf("changed %s, want %s", change.File, path)
	}
	if target, err := os.Readlink(link); err != nil || target != path {
		t.Errorf("the link leads to %q: %v", target, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != mode || int(st.Uid) != uid || int(st.Gid) != gid {
		t.Errorf("mode %v, owner %d, group %d; want %o, %d, %d", info.Mode(), st.Uid, st.Gid, mode, uid, gid)
	}
	if got := readFile(t, link); got != "new\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "old\n")
	twice := filepath.Join(filepath.Dir(file), "twice")
	if err := os.Link(file, twice); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		dir:                        ErrNotRegular,
		fifo:                       ErrNotRegular,
		twice:                      ErrLinks,
		filepath.Join(dir, "none"): os.ErrNotExist,
	} {
		if _, err := editText(t.Context(), path, replaceBy("new"), Options{}); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", path, err, want)
		}
	}
	if got := readFile(t, file); got != "old\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestFailures tells that nothing changes and nothing is left whatever fails.
func TestFailures(t *testing.T) {
	failure := errors.New("no")
	cancelled, cancel := context.WithCancel(t.Context())
	for name, test := range map[string]struct {
		ctx  context.Context
		edit func(path string, old io.ReadSeeker, w io.Writer) error
		o    Options
		want error
	}{
		"edit": {edit: func(_ string, _ io.ReadSeeker, w io.Writer) error {
			_, err := w.Write(bytes.Repeat([]byte("half"), 1<<20))
			return errors.Join(err, failure)
		}, want: failure},
		"before": {edit: func(_ string, _ io.ReadSeeker, w io.Writer) error {
			_, err := w.Write([]byte("new"))
			return err
		}, o: Options{Before: func(Change) error { return failure }}, want: failure},
		"cancelled": {ctx: cancelled, edit: func(_ string, old io.ReadSeeker, w io.Writer) error {
			cancel()
			_, err := io.Copy(w, old)
			return err
		}, want: context.Canceled},
		"changed in place": {edit: func(path string, _ io.ReadSeeker, w io.Writer) error {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = file.WriteString("theirs\n")
			return errors.Join(err, file.Close())
		}, want: ErrChanged},
		"replaced": {edit: func(path string, _ io.ReadSeeker, w io.Writer) error {
			return errors.Join(os.WriteFile(path+".x", []byte("old\ntheirs\n"), 0o600), os.Rename(path+".x", path))
		}, want: ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "old\n")
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err := Rewrite(ctx, path, func(old io.ReadSeeker, w io.Writer) error { return test.edit(path, old, w) }, test.o)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			want := "old\n"
			if errors.Is(test.want, ErrChanged) {
				want = "old\ntheirs\n"
			}
			if got := readFile(t, path); got != want {
				t.Errorf("the file holds %q, want %q", got, want)
			}
			if more := others(t, path); more != nil {
				t.Errorf("left beside it: %q", more)
			}
		})
	}
}
