package logging

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

// OutputFile begins the output that is a file: "file:/var/log/gate.log".
const OutputFile = "file:"

// fileMode is the mode of a new log file, which contains mail addresses.
const fileMode = 0o640

// The reasons why a file cannot be a log file. Use errors.Is.
var (
	ErrNotRegular = errors.New("is not a regular file")
	ErrLink       = errors.New("is a symbolic link in a directory that others may write to")
)

// CheckFile returns an error if path cannot be a log file. It does not make the
// file.
func CheckFile(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		dir := filepath.Dir(path)
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		return err
	}
	f, err := openFile(path, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// openFile opens a log file for appending. If flag is os.O_CREATE it makes a missing
// file. In a directory that others may write to it follows no symbolic link, since
// they could have made it.
func openFile(path string, flag int) (*os.File, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if dir.Mode().Perm()&0o022 != 0 {
		flag |= syscall.O_NOFOLLOW
	}
	// Without O_NONBLOCK, opening a named pipe waits for a reader.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK|flag, fileMode)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("%s %w", path, ErrLink)
	case errors.Is(err, syscall.ENXIO):
		return nil, fmt.Errorf("%s %w", path, ErrNotRegular)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// logFile is the output of a file that can be opened again by its name.
type logFile struct {
	stream
	path string
	f    *os.File

	stderr  *slog.Logger // takes errors of the file
	log     *slog.Logger // writes to the file
	failing bool
}

// newFile logs to a file.
func newFile(path string, o Options) (*Log, error) {
	f, err := openFile(path, os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("opening the log file: %w", err)
	}
	out := &logFile{stream: stream{w: f}, path: path, f: f, stderr: alarms(o)}
	l := newLog(out, handlerNotice(o), o)
	l.Logger = slog.New(newHandler(l.queue, o))
	out.log = l.Logger // not used before Reopen
	return l, nil
}

func (l *logFile) write(b batch) (done, kept int) {
	done, kept, err := l.writeFirst(b)
	if err != nil && !l.failing {
		l.stderr.Error("log file cannot be written, lines are dropped", "file", l.path, "error", err)
	}
	l.failing = err != nil
	return done, kept
}

// reopen opens the file at the path again. If that fails, the open file stays.
func (l *logFile) reopen() {
	f, err := openFile(l.path, os.O_CREATE)
	if err != nil {
		for _, to := range []*slog.Logger{l.log, l.stderr} {
			to.Error("log file not reopened, the old one continues", "file", l.path, "error", err)
		}
		return
	}
	if err := l.f.Close(); err != nil {
		l.stderr.Error("closing the old log file", "file", l.path, "error", err)
	}
	l.f, l.stream = f, stream{w: f}
}

func (l *logFile) close() error { return l.f.Close() }
