package admin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/unixsocket"
)

// TestSocketRights checks mode and group with any umask, and that no other file
// remains.
func TestSocketRights(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o660, 0o666} {
		dir := t.TempDir()
		path := filepath.Join(dir, "admin.sock")
		s := listenAt(t, Options{Gate: &fakeGate{}, Socket: unixsocket.Socket{Path: path, Mode: mode, Group: strconv.Itoa(os.Getgid())}})
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Type() != fs.ModeSocket || info.Mode().Perm() != mode {
			t.Errorf("the socket has mode %v, want a socket with %v", info.Mode(), mode)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("beside the socket there is %v", left)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("after Close there is %v", left)
		}
	}
}

func TestSocketPlaces(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		path func(dir string) string
		want string // in the error; "" where it works
	}{
		{"missing directory", func(dir string) string { return filepath.Join(dir, "no", "admin.sock") }, "no such file"},
		{"name longer than the kernel's", func(dir string) string { return filepath.Join(dir, strings.Repeat("n", 200)) }, "set a shorter"},
		{"a file", func(dir string) string {
			path := filepath.Join(dir, "file")
			os.WriteFile(path, []byte("precious"), 0o644)
			return path
		}, "not a socket"},
		{"a directory", func(dir string) string { return dir }, "not a socket"},
		{"stale socket", func(dir string) string {
			path := filepath.Join(dir, "stale")
			l, err := unixsocket.Socket{Path: path, Mode: 0o600}.Listen()
			if err == nil {
				l.Share()
				err = l.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			return path
		}, ""},
		{"path longer than the kernel's", func(string) string { return filepath.Join(deep, "admin.sock") }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := test.path(t.TempDir())
			s, err := Listen(Options{Gate: &fakeGate{}, Socket: unixsocket.Socket{Path: path, Mode: 0o600}})
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
					t.Fatalf("error %v, want one with %q and the path", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c, err := Dial(path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if n, err := Call(context.Background(), c, OpGeneration, None{}); n.Generation != 7 || err != nil {
				t.Errorf("generation %d, %v", n.Generation, err)
			}
		})
	}
}

func TestSocketUnknownGroup(t *testing.T) {
	_, err := Listen(Options{Gate: &fakeGate{}, Socket: unixsocket.Socket{Path: filepath.Join(t.TempDir(), "s"), Mode: 0o600, Group: "no-such-group"}})
	if err == nil || !strings.Contains(err.Error(), "socket_group") {
		t.Errorf("error %v, want one about socket_group", err)
	}
}

// TestTakeOver lets a second server take the socket over: the first must not remove
// it, and answers earlier requests.
func TestTakeOver(t *testing.T) {
	first := listen(t, &fakeGate{})
	path := first.options.Socket.Path
	if _, err := Listen(Options{Gate: &fakeGate{}, Socket: unixsocket.Socket{Path: path, Mode: 0o600}}); !errors.Is(err, unixsocket.ErrInUse) {
		t.Fatalf("a second server: %v, want %v", err, unixsocket.ErrInUse)
	}
	second := listenAt(t, Options{Gate: &fakeGate{}, Socket: unixsocket.Socket{Path: path, Mode: 0o640}, TakeOver: true})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c := dial(t, path)
	if _, err := Call(context.Background(), c, OpGeneration, None{}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(path); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial after both have ended: %v, want %v", err, ErrNotRunning)
	}
}

// TestEnsure removes the socket, and lets another server take it over and fail.
func TestEnsure(t *testing.T) {
	s := listen(t, &fakeGate{})
	if err := os.Remove(s.options.Socket.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(s.options.Socket.Path); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("without a socket: %v", err)
	}
	for range 2 {
		if err := s.Ensure(); err != nil {
			t.Fatal(err)
		}
		if _, err := Call(context.Background(), dial(t, s.options.Socket.Path), OpGeneration, None{}); err != nil {
			t.Fatal(err)
		}
	}
	other := listenAt(t, Options{Gate: &fakeGate{}, Socket: unixsocket.Socket{Path: s.options.Socket.Path, Mode: 0o600}, TakeOver: true})
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ensure(); err != nil {
		t.Fatal(err)
	}
	if _, err := Call(context.Background(), dial(t, s.options.Socket.Path), OpGeneration, None{}); err != nil {
		t.Fatal(err)
	}
}

func TestDialNobody(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(file, "below")} {
		if _, err := Dial(path); !errors.Is(err, ErrNotRunning) {
			t.Errorf("Dial(%q): %v, want %v", path, err, ErrNotRunning)
		}
	}
	// A gate may run without this socket.
	for _, path := range []string{"", file} {
		if _, err := Dial(path); err == nil || errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "cannot query a gate") {
			t.Errorf("Dial(%q): %v, want that it cannot be asked", path, err)
		}
	}
}

func TestDialForbidden(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may open everything")
	}
	s := listen(t, &fakeGate{})
	if err := os.Chmod(s.options.Socket.Path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := Dial(s.options.Socket.Path)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "socket_group") {
		t.Errorf("Dial: %v, want %v and what to do", err, fs.ErrPermission)
	}
	if unreachable := (*UnreachableError)(nil); !errors.As(err, &unreachable) || errors.Is(err, ErrNotRunning) {
		t.Errorf("Dial: %v, want that nobody knows whether a gate runs", err)
	}
}
