//go:build !unix

package durable

import "errors"

// LockDir locks nothing: this system has no locks that end with a process. Of what
// several processes write at the same time some may be lost.
func LockDir(string) (unlock func(), err error) { return func() {}, nil }

// TryLockDir never has a lock, so that nothing is taken for left over.
func TryLockDir(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
