package recipients

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
)

// copyDir is the directory in the state directory with the last good versions.
const copyDir = "recipients"

// copyHeader begins a copy, before the path of the file.
const copyHeader = "# the last good version of "

// readCopy makes the last good version in the state directory serve, if it is of this file.
func (f *File) readCopy() {
	if f.options.StateDir == "" {
		return
	}
	raw, written, err := f.openCopy()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			f.log.Warn("the copy of recipients in the state directory cannot be read", "error", err)
		}
		return
	}
	header, rest, _ := bytes.Cut(raw, []byte("\n"))
	if string(header) != f.header() {
		return
	}
	c, err := parse(bytes.NewReader(rest), f.spec.Kind)
	if err != nil || check(f.spec, c, nil, false) != nil {
		return
	}
	f.copied = sha256.Sum256(rest)
	f.live.Store(&version{c, written, written})
}

// openCopy returns the content of the copy, and when it was written.
func (f *File) openCopy() ([]byte, time.Time, error) {
	file, err := atomicfile.In(f.options.StateDir).Open(f.spec.copyName())
	if err != nil {
		return nil, time.Time{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxSize+listfile.MaxLine))
	return raw, info.ModTime(), err
}

// header returns the first line of the copy.
func (f *File) header() string {
	return copyHeader + strings.Map(func(r rune) rune {
		if r < ' ' {
			return '?'
		}
		return r
	}, f.spec.Path)
}

// writeCopy keeps a version for the next start. It only logs that it could not.
func (f *File) writeCopy(raw []byte) {
	sum := sha256.Sum256(raw)
	if f.options.StateDir == "" || sum == f.copied {
		return
	}
	err := f.replaceCopy(raw)
	if err != nil {
		f.log.Warn("the last good version of recipients is not kept: a restart needs the file itself", "error", err)
		return
	}
	f.copied = sum
}

func (f *File) replaceCopy(raw []byte) error {
	tree := atomicfile.In(f.options.StateDir)
	if err := tree.MakeDirs(copyDir); err != nil {
		return err
	}
	file, err := tree.Create(copyDir, string(f.spec.Kind)+".new*", 0o600)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.WriteString(f.header() + "\n"); err != nil {
		return err
	}
	if _, err := file.Write(raw); err != nil {
		return err
	}
	return file.Commit(f.spec.copyName())
}
