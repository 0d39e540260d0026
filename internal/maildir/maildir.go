// Package maildir delivers messages into a Maildir: a directory with the
// subdirectories tmp, new and cur, where each message is a file. It appears in new
// complete and on disk, or not at all (https://cr.yp.to/proto/maildir.html).
package maildir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"spamgate/internal/atomicfile"
)

// staleAfter is the age at which a file in tmp must be left from a crash. At that age
// the Maildir specification lets readers remove it.
const staleAfter = 36 * time.Hour

// Dir is a Maildir that is open for delivery. Its methods are safe for concurrent use,
// and several processes may deliver into one directory.
type Dir struct {
	path    string
	host    string // encoded for a file name
	counter atomic.Uint64
}

// Open makes the directory and its subdirectories with mode 0700 if they are missing,
// and removes files in tmp that are older than 36 hours.
func Open(path string) (*Dir, error) {
	for _, dir := range []string{path, filepath.Join(path, "tmp"), filepath.Join(path, "new"), filepath.Join(path, "cur")} {
		if err := makeDir(dir); err != nil {
			return nil, fmt.Errorf("maildir %s: %w%s", path, err, remedy(err))
		}
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	d := &Dir{path: path, host: encodeHost(host)}
	if err := atomicfile.RemoveStale(filepath.Join(path, "tmp"), "", staleAfter); err != nil {
		return nil, fmt.Errorf("maildir %s: %w", path, err)
	}
	return d, nil
}

// Path returns the directory as given to Open.
func (d *Dir) Path() string { return d.path }

// remedy returns what to do about a directory that cannot be made.
func remedy(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return "; name a directory that this process may write to, under systemd also in ReadWritePaths= (systemctl edit spamgate)"
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("; make it for the user with the number %d (install -d -m 700 -o USER)", os.Geteuid())
	}
	return ""
}

// makeDir makes a directory with its parents, and syncs their names: a message is lost
// with its directory.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDir(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		return syncDir(filepath.Dir(dir))
	}
	if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

// syncDir syncs a directory. Unlike [atomicfile.SyncDir] it fails if the file system cannot
// do so: a message whose name may be lost is not delivered.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// uniqueName returns a unique file name: time, microsecond, process, the number of
// deliveries of this process, and host.
func (d *Dir) uniqueName(now time.Time) string {
	return fmt.Sprintf("%d.M%06dP%dQ%d.%s", now.Unix(), now.Nanosecond()/1000, os.Getpid(), d.counter.Add(1), d.host)
}

// encodeHost escapes the bytes that a file name in a Maildir cannot contain, as the
// specification says.
func encodeHost(host string) string {
	return strings.NewReplacer("/", `\057`, ":", `\072`).Replace(host)
}
