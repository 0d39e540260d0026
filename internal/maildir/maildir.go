// Package maildir delivers messages into a Maildir: a directory with the
// subdirectories tmp, new and cur, where a message is one file that appears in
// new whole and durable, or not at all (https://cr.yp.to/proto/maildir.html).
package maildir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"spamgate/internal/durable"
)

// staleAfter is the age at which a file in tmp is what a crash left behind.
// The Maildir specification has readers remove them then.
const staleAfter = 36 * time.Hour

// Dir is a Maildir that is open for delivery. Its methods may be called at the
// same time, and several processes may deliver into one directory.
type Dir struct {
	path    string
	host    string // encoded for a file name
	counter atomic.Uint64
}

// Open makes the directory and its subdirectories where they are missing, for
// the owner alone (0700), and removes what crashes more than 36 hours ago left
// in tmp.
func Open(path string) (*Dir, error) {
	for _, dir := range []string{path, filepath.Join(path, "tmp"), filepath.Join(path, "new"), filepath.Join(path, "cur")} {
		if err := makeDir(dir); err != nil {
			return nil, fmt.Errorf("maildir %s: %w", path, err)
		}
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	d := &Dir{path: path, host: encodeHost(host)}
	if err := durable.RemoveStale(filepath.Join(path, "tmp"), "", staleAfter); err != nil {
		return nil, fmt.Errorf("maildir %s: %w", path, err)
	}
	return d, nil
}

// Path is the directory as it was given to Open.
func (d *Dir) Path() string { return d.path }

// makeDir makes a directory with its parents, and each of them durable: a
// message is lost with the directory that it lies in.
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
	info, statErr := os.Stat(dir)
	if statErr == nil && info.IsDir() {
		return nil
	}
	return err
}

// syncDir makes the entries of a directory durable. Other than [durable.SyncDir] it
// has an error also where the file system has no such thing: a message whose name
// may be lost is not delivered.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}

// uniqueName makes a file name that no other delivery has: time, microsecond,
// process, the number of deliveries of this process, and host.
func (d *Dir) uniqueName(now time.Time) string {
	return fmt.Sprintf("%d.M%06dP%dQ%d.%s", now.Unix(), now.Nanosecond()/1000, os.Getpid(), d.counter.Add(1), d.host)
}

// encodeHost writes the bytes that a file name in a Maildir cannot hold as the
// specification says.
func encodeHost(host string) string {
	return strings.NewReplacer("/", `\057`, ":", `\072`).Replace(host)
}
