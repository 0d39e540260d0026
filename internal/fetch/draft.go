package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"path"
	"time"

	"spamgate/internal/durable"
)

const (
	// draftPrefix begins the name of a draft. The dot hides it from globs of
	// list files.
	draftPrefix = ".fetch-"

	copyMode  = 0o644
	stateMode = 0o600 // the URL in it may hold a password
)

// draft is a file that takes the place of another once it is whole.
type draft struct {
	tree durable.Tree
	name string // in tree
	file *durable.File
	mode fs.FileMode
	size int64
	hash hash.Hash
}

// newDraft begins a file of a directory. Its mode will be that of the file that is
// there, else copyMode. Anything but a file in its place is an error.
func newDraft(tree durable.Tree, name string) (*draft, error) {
	d := &draft{tree: tree, name: name, mode: copyMode, hash: sha256.New()}
	dir := path.Dir(name)
	if err := tree.MakeDirs(dir); err != nil { // the state directory, too, where a fetch comes first
		return nil, err
	}
	switch info, err := tree.StatFile(name); {
	case err == nil:
		d.mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	var err error
	d.file, err = tree.CreateUnnamed(dir, draftPrefix+"*", 0o600)
	return d, err
}

func (d *draft) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	d.size += int64(n)
	d.hash.Write(p[:n])
	return n, err
}

// sum returns the SHA-256 of the content.
func (d *draft) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }

// bytes returns the content.
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
	// The gate, which may run as another user, has to replace what root fetched.
	err = errors.Join(d.file.Chmod(d.mode), d.file.GiveAway())
	if err == nil {
		err = d.file.Commit(d.name)
	}
	return info.ModTime(), err
}

// discard leaves nothing of a file that was not committed.
func (d *draft) discard() { d.file.Discard() }

// removeStale removes what a fetch that was killed has left. A younger file may
// be another process's, which is still at it.
func (f *Fetcher) removeStale(s Source) {
	tree, name := s.place()
	err := tree.RemoveStale(path.Dir(name), draftPrefix, 2*max(s.Timeout, DefaultTimeout))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // else there is nothing yet
		f.log.Warn("a file that an earlier fetch left is still there", "list", s.Name, "error", err)
	}
}
