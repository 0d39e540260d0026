package maildir

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bufferSize is how many bytes are written to a file at a time.
const bufferSize = 64 << 10

// File is one message on its way: a file in tmp until Commit. It must be ended
// by Commit or Abort. It is for one goroutine.
type File struct {
	dir  *Dir
	name string
	file *os.File
	buf  *bufio.Writer
	err  error // the first that occurred
	done bool
}

// errDone is about a File that is used after its end.
var errDone = errors.New("file is committed or aborted")

// Create begins a message. The file is for the owner alone (0600).
func (d *Dir) Create() (*File, error) {
	name := d.uniqueName(time.Now())
	file, err := os.OpenFile(filepath.Join(d.path, "tmp", name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("maildir: %w", err)
	}
	return &File{dir: d, name: name, file: file, buf: bufio.NewWriterSize(file, bufferSize)}, nil
}

// Name is the message's unique name, which is its file's name in new too.
func (f *File) Name() string { return f.name }

// Write adds to the message. After an error the message can only be aborted.
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

// Commit delivers the message: when it returns nil, the file is in new, and it
// and its name are on disk. When it returns an error nothing of the message is
// left, unless the error says that removing it failed as well.
//
// The order is what makes it hold through a crash: the content is synced before
// the file is renamed into new, and new before success is reported. A rename
// that is undone by a crash leaves the file in tmp, where nobody reads it.
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

// undo removes the file from a subdirectory and returns the error that was the
// cause.
func (f *File) undo(sub string) error {
	return fmt.Errorf("maildir: %w", errors.Join(f.err, os.Remove(f.path(sub))))
}

// Abort removes the message. After Commit or a first Abort it does nothing.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.file.Close(), os.Remove(f.path("tmp")))
}

func (f *File) path(sub string) string { return filepath.Join(f.dir.path, sub, f.name) }
