//go:build !unix

package partial

import (
	"errors"
	"fmt"
	"os"
)

// errLocked is never returned here.
var errLocked = errors.New("locked")

// openRegular opens a regular file to read and to append.
func openRegular(path string, create bool) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; remove it", path)
	}
	flags := os.O_RDWR | os.O_APPEND
	if create {
		flags |= os.O_CREATE
	}
	return os.OpenFile(path, flags, 0o600)
}

// tryLock locks nothing: this system has no locks that end with a process.
func tryLock(*os.File) error { return nil }

func unlockFile(*os.File) {}
