package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is the longest path of a socket on Linux, without the NUL at its end
// (unix(7)). On the BSDs it is 103.
const maxSocketPath = 107

var errLongPath = fmt.Errorf("the path is longer than the %d bytes that a socket's may have: set a shorter [admin] socket", maxSocketPath)

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

// listenUnix makes a socket whose file remains after Close.
func listenUnix(path string) (l *net.UnixListener, err error) {
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

// dialUnix connects to a socket. If nobody listens the error is ErrNotRunning, if that
// is unknown an UnreachableError.
func dialUnix(ctx context.Context, path string) (c net.Conn, err error) {
	err = socketPath(path, func(path string) error {
		c, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, errNoSocket):
		return nil, &UnreachableError{path, errNoSocket}
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, fmt.Errorf("%w (nobody answers on %s)", ErrNotRunning, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, &UnreachableError{path, fmt.Errorf("%w: run this as the gate's user, or set [admin] socket_group and socket_mode", fs.ErrPermission)}
	default:
		var failed *net.OpError // may contain a path from shortPath
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, &UnreachableError{path, err}
	}
}

// errNoSocket is also for a link to a socket: everyone who may write to the directory,
// such as the gate's user, could lead root's commands to a socket of another service.
var errNoSocket = errors.New("there is a file that is not a socket")
