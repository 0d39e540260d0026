package store

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"spamgate/internal/atomicfile"
	"spamgate/internal/dirwatch"
)

// ErrNoMatch is wrapped by the error for a glob that matches no file.
var ErrNoMatch = dirwatch.ErrNoMatch

// Files expands the paths and globs of a [List] into its files, as a [Store] does: in the
// order of the paths, those of a glob by name, each once. An error is a
// *[fs.PathError].
func Files(paths []string) ([]string, error) {
	return dirwatch.Find(paths, func(string, string) {})
}

// Opener opens the files of lists. It opens what is in StateDir, the copies of lists from
// URLs, without following a symbolic link: see [atomicfile.Tree]. The zero Opener has no
// such directory.
type Opener struct {
	StateDir string

	// Instead maps files that this process may not read to copies of them.
	Instead map[string]string
}

// inState returns the name of a path in the state directory, if it has one.
func (o Opener) inState(path string) (tree atomicfile.Tree, name string, ok bool) {
	if o.StateDir == "" {
		return tree, "", false
	}
	tree = atomicfile.In(o.StateDir)
	name, ok = tree.Name(path)
	return tree, name, ok
}

// Open opens a file of a list. A file that is not a regular one is an [ErrNotRegular]:
// opening a named pipe would wait for its other end.
func (o Opener) Open(path string) (*os.File, error) {
	if instead, ok := o.Instead[path]; ok {
		return os.Open(instead)
	}
	if tree, name, ok := o.inState(path); ok {
		return tree.Open(name)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Stat describes a file of a list, which has to be a regular one.
func (o Opener) Stat(path string) (fs.FileInfo, error) {
	if instead, ok := o.Instead[path]; ok {
		return os.Stat(instead)
	}
	if tree, name, ok := o.inState(path); ok {
		return tree.StatFile(name)
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	return info, err
}

func notRegular(path string, info fs.FileInfo) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w but a %s", ErrNotRegular, kindOf(info.Mode()))}
}

// ContentSum returns the sum by which a list's content is accepted (see [AcceptContent]):
// the SHA-256 over those of its files, in the list's order.
func (o Opener) ContentSum(paths []string) (string, error) {
	return o.ContentSumWith(paths, "", [sha256.Size]byte{})
}

// ContentSumWith returns the ContentSum that a list's files will have when one of them has a
// content of this SHA-256.
func (o Opener) ContentSumWith(paths []string, file string, sum [sha256.Size]byte) (string, error) {
	sums := make([][sha256.Size]byte, len(paths))
	for i, path := range paths {
		if path == file {
			sums[i] = sum
			continue
		}
		var err error
		if sums[i], err = o.fileSum(path); err != nil {
			return "", err
		}
	}
	return contentSum(sums), nil
}

func (o Opener) fileSum(path string) (sum [sha256.Size]byte, err error) {
	f, err := o.Open(path)
	if err != nil {
		return sum, fmt.Errorf("computing the sum of a list: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, fmt.Errorf("computing the sum of a list: %w", err)
	}
	h.Sum(sum[:0])
	return sum, nil
}
