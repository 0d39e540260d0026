//go:build !linux

package atomicfile

import (
	"io/fs"
	"os"
)

// CreateUnnamed is [Create]: this system has no unnamed files.
func CreateUnnamed(dir, pattern string, mode fs.FileMode) (*File, error) {
	return Create(dir, pattern, mode)
}

// CreateUnnamed is [Tree.Create].
func (t Tree) CreateUnnamed(dir, pattern string, mode fs.FileMode) (*File, error) {
	return t.Create(dir, pattern, mode)
}

// linkAt is never called.
func linkAt(*os.File, *os.File, string) error { return os.ErrInvalid }
