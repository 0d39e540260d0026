//go:build !linux

package durable

import (
	"io/fs"
	"os"
)

// CreateUnnamed is [Create]: this system has no files without names.
func CreateUnnamed(dir, pattern string, mode fs.FileMode) (*File, error) {
	return Create(dir, pattern, mode)
}

// link is never asked for.
func link(*os.File, string) error { return os.ErrInvalid }
