package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// checkFile returns an error if a file is not regular.
func checkFile(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode&fs.ModeSymlink != 0:
		return ErrLink
	default:
		return fmt.Errorf("%w but a %s: move it away", ErrKind, kindOf(mode))
	}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// openAttempts bounds the attempts to open a file that other processes replace
// meanwhile.
const openAttempts = 20

var errReplaced = errors.New("other processes replace it again and again")

// openFile opens a regular file, or with os.O_CREATE makes it with mode 0600. If root
// makes it, it belongs to the owner of the directory.
func (t Tree) openFile(name string, flag int) (file *os.File, err error) {
	return file, t.do("open", func(root *os.Root) error {
		for range openAttempts {
			if file, err = t.tryOpen(root, name, flag); !errors.Is(err, errReplaced) {
				return err
			}
		}
		return errReplaced
	}, name)
}

// tryOpen opens a file once. The error is errReplaced if another process has replaced
// it meanwhile. It checks the file before opening it, since opening a device may have
// an effect, and afterwards.
func (t Tree) tryOpen(root *os.Root, name string, flag int) (*os.File, error) {
	before, err := root.Lstat(name)
	made := errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0
	switch {
	case made:
		flag |= os.O_EXCL
	case err != nil:
		return nil, err
	default:
		flag &^= os.O_CREATE
		if err := checkFile(before); err != nil {
			return nil, err
		}
	}
	file, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return nil, errReplaced
	case err != nil:
		return nil, err
	case made:
		err = giveAway(t.dir, file.Chown)
	default:
		err = checkOpened(root, file, before)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// checkOpened checks that an open file is the one that was checked before, and that it
// is not a hard link to another user's file.
func checkOpened(root *os.Root, file *os.File, before fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(before, info) {
		return errReplaced
	}
	dir, err := root.Stat(".")
	if err != nil {
		return err
	}
	return checkLinks(info, dir)
}

// Open opens a file for reading.
func (t Tree) Open(name string) (*os.File, error) { return t.openFile(name, os.O_RDONLY) }

// Append opens a file for appending. It makes a missing file with mode 0600; if root
// makes it, it belongs to the owner of the directory.
func (t Tree) Append(name string) (*os.File, error) {
	return t.openFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
}

// ReadFile reads a file of at most most bytes.
func (t Tree) ReadFile(name string, most int64) ([]byte, error) {
	file, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	if err != nil {
		return nil, t.failed("read", name, err)
	}
	return text, nil
}
