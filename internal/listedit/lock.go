package listedit

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock waits for the file's lock, and calls waiting, if not nil, when long says
// that it has waited for long. The lock is given back when the file is closed,
// also by the end of the process, whatever ends it.
func lock(ctx context.Context, file *os.File, long <-chan time.Time, waiting func()) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	// The wait cannot be ended from here. So it is done on a second descriptor of
	// the same lock, which is closed when the wait is over: if ctx ends first
	// nobody is hurt by a lock that comes later.
	second, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	locked := make(chan error, 1)
	go func() {
		defer unix.Close(second)
		locked <- flock(second)
	}()
	for {
		select {
		case err := <-locked:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-long:
			if waiting != nil {
				waiting()
			}
		}
	}
}

// flock returns the wait itself, which a signal interrupts.
func flock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
