package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLeftovers checks that the directories of killed processes are removed, but not
// those of running ones.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	stays := fmt.Sprintf(".socket-%d-1", os.Getppid())
	for _, name := range []string{".socket-2147483647-1", fmt.Sprintf(".socket-%d-1", os.Getpid()), stays, ".socket-other", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	open, err := Socket{Path: filepath.Join(dir, "s"), Mode: 0o600}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{stays, ".socket-other", "other", "s"}
	slices.Sort(want)
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("there is %q, %v, want %q", names, err, want)
	}
}

// TestCheckFree has what may be at the path of a socket that is to be made.
func TestCheckFree(t *testing.T) {
	for name, test := range map[string]struct {
		make func(t *testing.T, path string)
		want string // in the error; "" if the path is free
	}{
		"nothing":   {func(*testing.T, string) {}, ""},
		"a process": {func(t *testing.T, path string) { makeSocket(t, path) }, fmt.Sprintf("%v (process %d)", ErrInUse, os.Getpid())},
		"a socket of an ended process": {func(t *testing.T, path string) {
			l := makeSocket(t, path)
			l.Share()
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"another sort of socket": {func(t *testing.T, path string) {
			c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}, "it is not known whether another process answers there: "},
		"a file": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			test.make(t, path)
			if err := CheckFree(path); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func makeSocket(t *testing.T, path string) *Listener {
	t.Helper()
	l, err := Socket{Path: path, Mode: 0o600}.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestAdopt gives a socket to another owner, which sets its mode and removes it. Until it owns
// the file, and once it does, the other leaves that alone.
func TestAdopt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := makeSocket(t, path)
	adopt := func() *Listener {
		f, err := first.File() // as a process gets it
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		copied, err := net.FileListener(f)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Adopt(copied.(*net.UnixListener), path)
		if err != nil {
			t.Fatal(err)
		}
		return second
	}
	if err := adopt().Close(); err != nil || !first.InPlace() {
		t.Fatalf("one that fails takes the file along: %v", err)
	}
	second := adopt()
	second.Own()
	first.Share()
	if err := errors.Join(second.SetMode(0o666), first.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o666 || !second.InPlace() {
		t.Fatalf("%v, %v, in place: %t", info, err, second.InPlace())
	}
	client, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	served, err := second.Accept()
	if err != nil {
		t.Fatal(err)
	}
	served.Close()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if _, err := Dial(context.Background(), path); !NobodyAnswers(err) {
		t.Errorf("Dial: %v", err)
	}
}

// TestDirectoryErrors says what to do if a socket cannot be made in a directory.
func TestDirectoryErrors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	_, err := Socket{Path: filepath.Join(dir, "s"), Mode: 0o600}.Listen()
	if err == nil || !strings.HasSuffix(err.Error(), "directory "+dir+": no such file or directory: make it for the gate's user, or set another path") {
		t.Errorf("a missing directory: %v", err)
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err = Socket{Path: filepath.Join(locked, "s"), Mode: 0o600}.Listen()
	if os.Getuid() != 0 && (err == nil || !strings.HasSuffix(err.Error(), "directory "+locked+": permission denied: let the gate's user write to it, or set another path")) {
		t.Errorf("a directory of somebody else: %v", err)
	}
}

// TestLongPath wants an error with the path, its length and the limit where no way of this system
// leads to a socket.
func TestLongPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", MaxPath+1))
	want := fmt.Sprintf("the path is too long: %s has %d bytes; the path of a socket may have %d on this system; set a shorter one", path, len(path), MaxPath)
	if l, err := (Socket{Path: path, Mode: 0o600}).Listen(); !errors.Is(err, ErrLongPath) || err.Error() != want {
		t.Errorf("%v, %v, want %q", l, err, want)
	}
	if short := "/" + strings.Repeat("n", MaxPath-1); TooLong(short) != "" || CheckPath(short) != nil {
		t.Errorf("%d bytes are too long: %q", len(short), TooLong(short))
	}
	if l, err := net.Listen("unix", strings.Repeat("n", MaxPath+1)); err == nil {
		l.Close()
		t.Errorf("the kernel takes %d bytes", MaxPath+1)
	}
}
