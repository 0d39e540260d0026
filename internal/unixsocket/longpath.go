package unixsocket

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is the longest path of a socket on Linux, without the NUL at its end
// (unix(7)). On the BSDs it is 103.
const maxSocketPath = 107

var errLongPath = fmt.Errorf("the path is longer than the %d bytes that a socket's may have: set a shorter one", maxSocketPath)

// shortPath calls use with a path of the socket that is short enough for the kernel: if
// necessary by way of its open directory.
func shortPath(path string, use func(path string) error) error {
	if len(path) <= maxSocketPath {
		return use(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	short := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat(filepath.Dir(short)); err != nil || len(short) > maxSocketPath {
		return errLongPath
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
