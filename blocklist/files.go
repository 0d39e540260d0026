package blocklist

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Files expands the paths and globs of a [List] into its files, as a [Store]
// does: in the order of the paths, those of a glob by name, each once. An error
// is a *[fs.PathError].
func Files(paths []string) ([]string, error) {
	return findFiles(paths, func(string, string) {})
}

// OpenFile opens a file of a list to be read. One that is not a regular file is an
// [ErrNotRegular]: to open a named pipe would be to wait for its other end.
func OpenFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but a %s", ErrNotRegular, kindOf(info.Mode()))}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
