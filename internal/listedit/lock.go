package listedit

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/atomicfile"
)

// lock waits for the file's lock. It calls waiting, if not nil, when long fires. Closing
// the file releases the lock, as does the end of the process.
func lock(ctx context.Context, file *os.File, long <-chan time.Time, waiting func()) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	if err := atomicfile.Do("wait", func() error { return nil }, file.Name()); err != nil {
		return err
	}
	// The wait cannot be interrupted. So it uses a second descriptor of the same lock,
	// which is closed after the wait: if ctx ends first, a later lock does no harm.
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

// flock waits, again if a signal interrupts it.
func flock(fd int) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
