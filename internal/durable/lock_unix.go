//go:build unix

package durable

import (
	"io/fs"
	"os"
	"syscall"
)

// LockDir waits for the lock of a directory, which ends with the process if not
// before.
func LockDir(dir string) (unlock func(), err error) { return lockDir(dir, syscall.LOCK_EX) }

// TryLockDir is LockDir, but where somebody else has the lock it is an error.
func TryLockDir(dir string) (unlock func(), err error) {
	return lockDir(dir, syscall.LOCK_EX|syscall.LOCK_NB)
}

func lockDir(dir string, how int) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(d.Fd()), how); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		d.Close()
		return nil, &fs.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { d.Close() }, nil
}
