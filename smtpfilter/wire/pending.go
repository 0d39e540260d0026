package wire

import (
	"io"
	"net"
	"syscall"
)

// Pending reports whether a connection has bytes to read. It does not wait, whatever the
// deadline, and reads none. The error is io.EOF if the peer has closed the connection.
// For a connection that is not a socket it returns false.
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
