package socket

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Inheritable is a socket that a successor can inherit.
type Inheritable struct {
	Key    string    // as in SocketsVariable
	Socket io.Closer // a net.Listener or net.PacketConn
}

// File returns a duplicate of the socket. The socket's own File method is of no use: passing
// its file on makes the socket blocking for this process, too. Each accept that the other
// process wins would then hang, and Close with it.
func (s Inheritable) File() (*os.File, error) {
	l, ok := s.Socket.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%s cannot be handed on: it is no socket", s.Key)
	}
	raw, err := l.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var dupErr error
	err = raw.Control(func(from uintptr) {
		fd, dupErr = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err = errors.Join(err, dupErr); err != nil {
		return nil, fmt.Errorf("copying the socket %s: %w", s.Key, err)
	}
	return os.NewFile(uintptr(fd), s.Key), nil
}
