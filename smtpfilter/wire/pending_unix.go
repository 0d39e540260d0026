//go:build unix

package wire

import (
	"io"
	"net"
	"syscall"
)

// Pending reports, without waiting, whether there are bytes to read on a
// connection, and takes none. Deadlines do not count. The error is io.EOF where
// the peer has closed it. A connection that is no socket is taken for open and
// silent.
func Pending(c net.Conn) (pending bool, err error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false, err
	}
	var n int
	var recvErr error
	err = raw.Control(func(fd uintptr) {
		var buf [1]byte
		for {
			n, _, recvErr = syscall.Recvfrom(int(fd), buf[:], syscall.MSG_PEEK)
			if recvErr != syscall.EINTR {
				return
			}
		}
	})
	switch {
	case err != nil:
		return false, err
	case recvErr == syscall.EAGAIN || recvErr == syscall.EWOULDBLOCK:
		return false, nil
	case recvErr != nil:
		return false, recvErr
	case n == 0:
		return false, io.EOF
	}
	return true, nil
}
