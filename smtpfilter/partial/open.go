package partial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"spamgate/internal/atomicfile"
)

// errLocked means that another process has the lock.
var errLocked = syscall.EWOULDBLOCK

// openRegular opens a regular file of this user to read and to append. It follows no
// link. A file that it creates is readable and writable by the owner only.
func openRegular(path string, create bool) (*os.File, error) {
	const flags = os.O_RDWR | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	for {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file; remove it", path) // opening a device may have effects
		}
		f, err := os.OpenFile(path, flags, 0)
		switch {
		case err == nil:
			if err := checkOwn(f); err != nil {
				f.Close()
				return nil, err
			}
			return f, nil
		case !errors.Is(err, fs.ErrNotExist) || !create:
			return nil, err
		}
		f, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue // another process has just created it
		}
		if err != nil {
			return nil, err
		}
		if err := errors.Join(atomicfile.GiveAway(path), atomicfile.SyncDir(filepath.Dir(path))); err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
}

// checkOwn checks that an open file is a regular file of this user (any user's, for root),
// and removes the permissions of others.
func checkOwn(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; remove it", f.Name())
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if me := os.Geteuid(); me != 0 && int(owner) != me {
		return fmt.Errorf("%s belongs to user %d, and this process runs as %d; remove it", f.Name(), owner, me)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return f.Chmod(0o600)
	}
	return nil
}

// tryLock locks an open file, or returns errLocked.
func tryLock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}

// unlockFile releases the lock. Closing the file has released it already.
func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
