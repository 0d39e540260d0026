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

	"spamgate/internal/atomicfile"
)

const (
	// draftPrefix begins the names of drafts. The dot hides them from globs.
	draftPrefix = ".fetch-"

	copyMode  = 0o644
	stateMode = 0o600 // its URL may contain a password
)

// draft is a file that replaces another one once it is complete.
type draft struct {
	tree atomicfile.Tree
	name string // in tree
	file *atomicfile.File
	mode fs.FileMode
	size int64
	hash hash.Hash
}

// newDraft makes the draft of a file. It gets the mode of the existing file, else
// copyMode. Anything but a regular file in its place is an error.
func newDraft(tree atomicfile.Tree, name string) (*draft, error) {
	d := &draft{tree: tree, name: name, mode: copyMode, hash: sha256.New()}
	dir := path.Dir(name)
	if err := tree.MakeDirs(dir); err != nil { // also the state directory
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
	_, err := io.ReadFull(d.reader(), content)
	return content, err
}

// reader returns a reader of the content.
func (d *draft) reader() *io.SectionReader { return io.NewSectionReader(d.file, 0, d.size) }

// commit moves the file to its place, and returns its modification time.
func (d *draft) commit() (time.Time, error) {
	info, err := d.file.Stat()
	if err != nil {
		return time.Time{}, err
	}
	// The gate's user has to be able to replace what root fetched.
	err = errors.Join(d.file.Chmod(d.mode), d.file.GiveAway())
	if err == nil {
		err = d.file.Commit(d.name)
	}
	return info.ModTime(), err
}

// discard removes a draft that was not committed.
func (d *draft) discard() { d.file.Discard() }

// removeStale removes the drafts of killed fetches. A younger one may belong to a fetch
// that another process still makes.
func (f *Fetcher) removeStale(s Source) {
	tree, name := s.place()
	err := tree.RemoveStale(path.Dir(name), draftPrefix, 2*max(s.Timeout, DefaultTimeout))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // no directory yet
		f.log.Warn("cannot remove a file that an earlier fetch left", "list", s.Name, "error", err)
	}
}
