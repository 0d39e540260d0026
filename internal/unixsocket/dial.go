package unixsocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"
)

// ErrInUse says that a process answers on the socket.
var ErrInUse = errors.New("another process answers there")

// ErrNotSocket says that the path leads to something else. It is also for a link to a socket:
// everyone who may write to the directory, such as the gate's user, could lead root's commands
// to a socket of another service.
var ErrNotSocket = errors.New("there is a file that is not a socket")

// Dial connects to the socket at a path. It follows no link.
func Dial(ctx context.Context, path string) (c net.Conn, err error) {
	err = socketPath(path, func(path string) error {
		c, err = new(net.Dialer).DialContext(ctx, "unix", path)
		return err
	})
	return c, err
}

// NobodyAnswers reports whether an error of Dial says that no process listens.
func NobodyAnswers(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR)
}

// checkLimit bounds the connection with which CheckFree tries a socket.
const checkLimit = 10 * time.Second

// CheckFree returns an error if a process answers on the socket at a path, or if that cannot be
// known. What is wrong with a path where no socket is, Listen reports.
func CheckFree(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), checkLimit)
	defer cancel()
	c, err := Dial(ctx, path)
	switch {
	case err == nil:
		defer c.Close()
		if p := PeerOf(c); p.Known {
			return fmt.Errorf("%w (process %d)", ErrInUse, p.PID)
		}
		return ErrInUse
	case NobodyAnswers(err), errors.Is(err, ErrNotSocket), errors.Is(err, ErrLongPath):
		return nil
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, context.DeadlineExceeded):
		return ErrInUse // its queue is full
	}
	var failed *net.OpError // may contain a path of ours
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("it is not known whether another process answers there: %w", err)
}

// Peer is the process at the other end of a connection, as reported by the kernel.
type Peer struct {
	Known bool // the kernel reported the others
	UID   int
	PID   int
}
