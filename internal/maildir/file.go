package maildir

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bufferSize is the size of a write to a file.
const bufferSize = 64 << 10

// File is a message that is being written: a file in tmp until Commit. The caller must
// call Commit or Abort. A File is for one goroutine.
type File struct {
	dir  *Dir
	name string
	file *os.File
	buf  *bufio.Writer
	err  error // the first one
	done bool
}

// errDone is for a File that is used after its end.
var errDone = errors.New("file is committed or aborted")

// Create begins a message, in a file with mode 0600.
func (d *Dir) Create() (*File, error) {
	name := d.uniqueName(time.Now())
	file, err := os.OpenFile(filepath.Join(d.path, "tmp", name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("maildir: %w", err)
	}
	return &File{dir: d, name: name, file: file, buf: bufio.NewWriterSize(file, bufferSize)}, nil
}

// Name returns the message's unique name, also that of its file in new.
func (f *File) Name() string { return f.name }

// Write adds to the message. After an error only Abort is possible.
func (f *File) Write(p []byte) (int, error) {
	if f.done {
		return 0, errDone
	}
	n, err := f.buf.Write(p)
	if err != nil {
		f.err = err
		err = fmt.Errorf("maildir: %w", err)
	}
	return n, err
}

// Commit delivers the message: if it returns nil, the file is in new, and it and its
// name are on disk. If it returns an error nothing of the message remains, unless the
// error says that removing it failed too.
//
// The message survives a crash because of the order: Commit syncs the content before
// it renames the file into new, and new before it returns. If a crash undoes the
// rename, the file is in tmp, where nobody reads it.
func (f *File) Commit() error {
	if f.done {
		return errDone
	}
	if f.err == nil {
		f.err = f.buf.Flush()
	}
	if f.err == nil {
		f.err = f.file.Sync()
	}
	f.done = true
	if err := f.file.Close(); f.err == nil {
		f.err = err
	}
	if f.err == nil {
		f.err = os.Rename(f.path("tmp"), f.path("new"))
	}
	if f.err != nil {
		return f.undo("tmp")
	}
	if f.err = syncDir(filepath.Join(f.dir.path, "new")); f.err != nil {
		return f.undo("new")
	}
	return nil
}

// undo removes the file from a subdirectory, and returns the first error.
func (f *File) undo(sub string) error {
	return fmt.Errorf("maildir: %w", errors.Join(f.err, os.Remove(f.path(sub))))
}

// Abort removes the message. After Commit or Abort it does nothing.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.file.Close(), os.Remove(f.path("tmp")))
}

func (f *File) path(sub string) string { return filepath.Join(f.dir.path, sub, f.name) }
