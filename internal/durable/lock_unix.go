//go:build unix

package durable

import (
	"os"
	"syscall"
)

// tryLock takes the lock of an open directory, which ends when it is closed, or fails
// with EWOULDBLOCK.
func tryLock(d *os.File) error {
	for {
		if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}
