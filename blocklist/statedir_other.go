//go:build !unix

package blocklist

import (
	"errors"
	"io/fs"
)

// ownerOf does not know.
func ownerOf(fs.FileInfo) (user, group int, ok bool) { return 0, 0, false }

// lockDir locks nothing: this system has no locks that end with a process.
func lockDir(string) (unlock func(), err error) { return func() {}, nil }

// tryLockDir never has a lock, so that nothing is taken for left over.
func tryLockDir(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
