package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// Bounds of the waits between attempts to accept a connection.
const (
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second
)

// acceptPatiently accepts a connection. After an error that may pass it tries
// again, so that a gate which has run out of file descriptors, or of memory for
// sockets, serves again once there are some.
func (l *Listener) acceptPatiently() (net.Conn, error) {
	for wait := minAcceptWait; ; wait = min(2*wait, maxAcceptWait) {
		nc, err := l.Listener.Accept()
		if err == nil || !mayPass(err) {
			return nc, err
		}
		if f := l.cfg.Load().AcceptFailed; f != nil {
			f(err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.closed:
			timer.Stop()
			return nil, net.ErrClosed
		}
	}
}

// passing are the errors of accept(2) that say nothing about the listening
// socket: want of descriptors or memory, or a client that has gone already.
var passing = []error{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
	syscall.ECONNABORTED, syscall.EPROTO, syscall.EINTR, os.ErrDeadlineExceeded,
}

func mayPass(err error) bool {
	for _, p := range passing {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}
