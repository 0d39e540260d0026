package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"spamgate/internal/atomicfile"
)

// CheckTarget follows links from the path of a flag. It returns the file to write, and its
// permissions or the usual ones. It refuses anything but a regular file.
func CheckTarget(flag, path string) (target string, perm fs.FileMode, err error) {
	switch path {
	case "":
		return "", 0, fmt.Errorf("no file to write: name one with %s FILE", flag)
	case "-":
		return "", 0, fmt.Errorf("%s -: standard output is for the report: name a file (./- for one that is called -)", flag)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return "", 0, fmt.Errorf("%s %s: %w: name a file in a folder that exists", flag, path, err)
		}
		return path, 0o666, nil
	case err != nil:
		return "", 0, fmt.Errorf("%s %s: %w", flag, path, err)
	case !info.Mode().IsRegular():
		return "", 0, fmt.Errorf("%s %s: not a regular file: name another", flag, path)
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", 0, fmt.Errorf("%s %s: %w", flag, path, err)
	}
	return target, info.Mode().Perm(), nil
}

// ReplaceFile replaces path by a file with what write writes. It writes a temporary file and
// renames it when everything is on the disk. After an error, the end of ctx or a signal, path
// is unchanged and nothing else is left.
func ReplaceFile(ctx context.Context, path string, perm fs.FileMode, write func(io.Writer) (int64, error)) (n int64, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	file, err := atomicfile.Create(filepath.Dir(path), filepath.Base(path)+".*.tmp", perm)
	if err != nil {
		return 0, fmt.Errorf("making a file beside %s: %w", path, err)
	}
	defer file.Discard()
	if info, statErr := os.Stat(path); statErr == nil {
		// An existing file keeps its permissions; the umask is for new ones.
		if err = file.Chmod(info.Mode().Perm()); err != nil {
			return 0, fmt.Errorf("giving %s the permissions of %s: %w", file.Name(), path, err)
		}
	}
	if n, err = write(file); err != nil {
		return n, fmt.Errorf("writing %s: %w", file.Name(), err)
	}
	if err = file.Sync(); err != nil {
		return n, fmt.Errorf("writing %s to the disk: %w", file.Name(), err)
	}
	if err = ctx.Err(); err != nil {
		return n, fmt.Errorf("interrupted, %s is as it was: %w", path, context.Cause(ctx))
	}
	if err = file.Place(path); err != nil {
		return n, fmt.Errorf("putting %s in place: %w", path, err)
	}
	// A directory without read permission cannot be synced.
	if err := atomicfile.SyncDir(filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return n, fmt.Errorf("%s is written, but perhaps not yet on the disk: %w", path, err)
	}
	return n, nil
}
