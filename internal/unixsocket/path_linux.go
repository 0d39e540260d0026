package unixsocket

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// socketPath calls use with a path of the socket that is at path now, even if another
// file replaces it meanwhile. It follows no link.
func socketPath(path string, use func(path string) error) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return ErrNotSocket
	}
	descriptor := fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err := os.Lstat(descriptor); errors.Is(err, os.ErrNotExist) { // no /proc
		return shortPath(path, use)
	}
	return use(descriptor)
}

// PeerOf returns who has connected (SO_PEERCRED, unix(7)).
func PeerOf(c net.Conn) Peer {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || credErr != nil {
		return Peer{}
	}
	return Peer{Known: true, UID: int(cred.Uid), PID: int(cred.Pid)}
}
