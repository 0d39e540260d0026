package wire

import (
	"errors"
	"net"
	"os"
	"slices"
	"syscall"
	"time"
)

// Limits of the waits between attempts to accept a connection.
const (
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// acceptRetrying accepts a connection. After a temporary error, such as a lack of file
// descriptors or memory, it tries again.
func (l *Listener) acceptRetrying() (net.Conn, error) {
	for wait := minAcceptWait; ; wait = min(2*wait, maxAcceptWait) {
		nc, err := l.Listener.Accept()
		if err == nil || !isTemporary(err) {
			return nc, err
		}
		if f := l.cfg.Load().AcceptFailed; f != nil {
			f(err)
		}
		select {
		case <-time.After(wait):
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
}

// temporary are the errors of accept(2) that say nothing about the listening socket: a
// lack of descriptors or memory, or a client that has left already.
var temporary = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	syscall.ECONNABORTED, syscall.EPROTO, syscall.EINTR, os.ErrDeadlineExceeded,
}

func isTemporary(err error) bool {
	return slices.ContainsFunc(temporary, func(t error) bool { return errors.Is(err, t) })
}
