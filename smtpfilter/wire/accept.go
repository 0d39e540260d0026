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

// Accept accepts a connection. After a temporary error, such as a lack of file descriptors
// or memory, it calls failed and tries again, until closed is closed.
func Accept(l net.Listener, closed <-chan struct{}, failed func(error)) (net.Conn, error) {
	for wait := minAcceptWait; ; wait = min(2*wait, maxAcceptWait) {
		nc, err := l.Accept()
		if err == nil || !isTemporary(err) {
			return nc, err
		}
		failed(err)
		select {
		case <-time.After(wait):
		case <-closed:
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
