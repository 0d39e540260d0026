package fetch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// draftPrefix begins the name of a draft. The dot hides it from globs of
	// list files.
	draftPrefix = ".fetch-"

	copyMode  = 0o644
	stateMode = 0o600 // the URL in it may hold a password
	dirMode   = 0o700 // of the state directory, too, where a fetch comes first
)

// draft is a file that takes the place of another once it is whole.
type draft struct {
	path string
	file *os.File // nil once it is committed or discarded
	name string   // "" while it has none (Linux), of which nothing stays if we are killed
	mode fs.FileMode
	size int64
	hash hash.Hash
}

// newDraft begins a file that is to be at path. Its mode will be that of the
// file that is there, else copyMode.
func newDraft(path string) (*draft, error) {
	d := &draft{path: path, mode: copyMode, hash: sha256.New()}
	if info, err := os.Stat(path); err == nil {
		d.mode = info.Mode().Perm()
	}
	if err := makeDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	var err error
	d.file, d.name, err = createDraft(filepath.Dir(path))
	return d, err
}

// createNamed makes a file that has a name from the start.
func createNamed(dir string) (*os.File, string, error) {
	file, err := os.CreateTemp(dir, draftPrefix+"*")
	if err != nil {
		return nil, "", err
	}
	return file, file.Name(), nil
}

func (d *draft) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.size += int64(n)
	d.hash.Write(p[:n])
	return n, err
}

// sum is the SHA-256 of the content.
func (d *draft) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// bytes is the content.
func (d *draft) bytes() ([]byte, error) {
	content := make([]byte, d.size)
	_, err := io.ReadFull(io.NewSectionReader(d.file, 0, d.size), content)
	return content, err
}

// commit puts the file in its place, and returns when it was modified.
func (d *draft) commit() (time.Time, error) {
	info, err := d.file.Stat()
	if err != nil {
		return time.Time{}, err
	}
	err = errors.Join(d.file.Chmod(d.mode), ownAsDir(d.file, filepath.Dir(d.path)), d.file.Sync())
	if err != nil {
		return time.Time{}, err
	}
	if d.name == "" {
		name := filepath.Join(filepath.Dir(d.path), draftPrefix+rand.Text())
		if err := link(d.file, name); err != nil {
			return time.Time{}, err
		}
		d.name = name
	}
	if err := os.Rename(d.name, d.path); err != nil {
		return time.Time{}, err
	}
	err = d.file.Close()
	d.file = nil
	return info.ModTime(), errors.Join(err, syncDir(filepath.Dir(d.path)))
}

// discard leaves nothing of a file that was not committed.
func (d *draft) discard() {
	if d.file == nil {
		return
	}
	// What can be done about an error here is done by removeStale.
	_ = d.file.Close()
	if d.name != "" {
		_ = os.Remove(d.name)
	}
	d.file = nil
}

// makeDir makes a directory with those above it. Each belongs to whom the one
// above it belongs to.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	made, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer made.Close()
	return errors.Join(ownAsDir(made, parent), syncDir(parent))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("writing the directory %s to disk: %w", dir, err)
	}
	return nil
}

// removeStale removes what a fetch that was killed has left. A younger file may
// be another process's, which is still at it.
func (f *Fetcher) removeStale(s Source) {
	dir := filepath.Dir(s.Copy)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is nothing yet, or newDraft will say why not
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if !strings.HasPrefix(entry.Name(), draftPrefix) || err != nil || time.Since(info.ModTime()) < 2*max(s.Timeout, DefaultTimeout) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if err := os.Remove(path); err != nil {
			f.log.Warn("a file that an earlier fetch left is still there", "list", s.Name, "error", err)
		}
	}
}
