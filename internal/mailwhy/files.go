package mailwhy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"spamgate/internal/rotated"
)

// Files returns a log file and what was rotated away of it, the oldest first, without files that
// were last written to before since.
func Files(path string, since time.Time) ([]string, error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) { // the file itself may be readable all the same
		return []string{path}, nil
	}
	if err != nil {
		return nil, err
	}
	type file struct {
		path    string
		written time.Time
	}
	var files []file
	there := false
	for _, e := range entries {
		if !rotated.Of(base, e.Name()) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		there = true
		if !info.ModTime().Before(since) {
			files = append(files, file{name, info.ModTime()})
		}
	}
	if !there {
		_, err := os.Stat(path) // why not
		if err == nil {
			err = fmt.Errorf("%s is not a regular file", path)
		}
		return nil, err
	}
	slices.SortFunc(files, func(a, b file) int { return a.written.Compare(b.written) })
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	return paths, nil
}

// ReadFile reads a log file, which may be packed. What a file that was cut off holds counts.
func (s *Search) ReadFile(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe must not block
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	content, err := rotated.Unpack(path, f)
	if err == nil {
		defer content.Close()
		err = s.Read(ctx, content, nil)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) { // an empty file that ends with .gz
		return fmt.Errorf("%s: %w", path, err)
	}
	return context.Cause(ctx)
}
