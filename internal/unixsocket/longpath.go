package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// MaxPath is the longest path of a socket that the kernel takes, without the NUL at its end: 107
// bytes on Linux (unix(7)), 103 on macOS and the BSDs.
const MaxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// TooLong returns what is wrong with a path that other programs cannot open as a socket, since
// it is longer than MaxPath, or "".
func TooLong(path string) string {
	if len(path) <= MaxPath {
		return ""
	}
	return fmt.Sprintf("%s has %d bytes; the path of a socket may have %d on this system", path, len(path), MaxPath)
}

// ErrLongPath says that this process cannot make or open a socket at a path either.
var ErrLongPath = errors.New("the path is too long")

// CheckPath returns an error that wraps ErrLongPath if no process can make or open a socket at
// a path. On Linux the gate and its commands use longer ones by way of /proc.
func CheckPath(path string) error { return shortPath(path, func(string) error { return nil }) }

// shortPath calls use with a path of the socket that is short enough for the kernel: if
// necessary by way of its open directory.
func shortPath(path string, use func(path string) error) error {
	if len(path) <= MaxPath {
		return use(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil || len(short) > MaxPath {
		return fmt.Errorf("%w: %s; set a shorter one", ErrLongPath, TooLong(path))
	}
	return use(short)
}

// listen makes a socket whose file remains after Close.
func listen(path string) (l *net.UnixListener, err error) {
	err = shortPath(path, func(path string) error {
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}
