//go:build unix

package blocklist

import (
	"io/fs"
	"os"
	"syscall"
)

// ownerOf is whom a file is.
func ownerOf(info fs.FileInfo) (user, group int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

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

// tryLockDir is lockDir, but where somebody else has the lock it is an error.
func tryLockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.Close()
		return nil, &fs.PathError{Op: "lock", Path: dir, Err: err}
	}
	return func() { d.Close() }, nil
}
