//go:build unix

package hits

import (
	"io/fs"
	"os"
	"syscall"
)

// lockDir waits for the lock of a directory, which ends with the process if not
// before.
func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		if err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		d.Close()
		return nil, &fs.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { d.Close() }, nil
}
