//go:build unix

package durable

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir puts the names in a directory on disk, so that a file that was made or
// renamed there keeps its name through a loss of power. Some file systems sync no
// directories; they do what they can without.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncDir(d)
}

func syncDir(d *os.File) error {
	if err := d.Sync(); !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
