package accounts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"spamgate/internal/atomicfile"
)

// maxFile bounds a file: 10,000 accounts have 4 MiB.
const maxFile = 64 << 20

const fileVersion = 1

// content is what a file of the store has, as JSON.
type content interface {
	// check makes what the methods use, and returns an error if the content is damaged.
	check() error
}

// jsonFile is a file of the store, which several processes replace. It is read again when
// it was replaced.
type jsonFile[T any, P interface {
	*T
	content
}] struct {
	tree atomicfile.Tree
	name string

	mu   sync.Mutex
	open *os.File    // the version that was read last: while it is open, no other file has its inode
	info fs.FileInfo // of open; nil if there is no file
	last P           // what it has
	err  error       // or why it cannot be used
}

// read returns the present content, which the caller must not change. A missing file has none.
func (f *jsonFile[T, P]) read() (P, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.tree.StatFile(f.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.forget()
		empty := P(new(T))
		return empty, empty.check()
	case err != nil:
		return nil, err
	case f.info != nil && sameVersion(f.info, info):
		return f.last, f.err
	}
	f.forget()
	if f.open, err = f.tree.Open(f.name); err != nil {
		return nil, err
	}
	if f.info, err = f.open.Stat(); err != nil {
		f.forget()
		return nil, err
	}
	f.last, f.err = f.parse(f.open)
	return f.last, f.err
}

// forget makes the next read begin anew.
func (f *jsonFile[T, P]) forget() {
	if f.open != nil {
		_ = f.open.Close() // only read
	}
	f.open, f.info, f.last, f.err = nil, nil, nil, nil
}

// close closes the file. It can be read again.
func (f *jsonFile[T, P]) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget()
}

// sameVersion reports whether a file has not changed.
func sameVersion(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (f *jsonFile[T, P]) parse(file io.Reader) (P, error) {
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	parsed := P(new(T))
	if err == nil {
		err = parse(text, parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, f.tree.Path(f.name), err)
	}
	return parsed, nil
}

// parse parses a file, whole or not at all.
func parse(text []byte, into content) error {
	var header struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return err
	}
	if header.Version != fileVersion {
		return fmt.Errorf("version %d, and this program knows version %d", header.Version, fileVersion)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	return into.check()
}

// write replaces the file. The caller holds the lock of the directory.
func (f *jsonFile[T, P]) write(current P) error {
	text, err := encode(current)
	if err != nil {
		return err
	}
	return f.writeText(text)
}

// encode returns a content as the file has it.
func encode(content content) ([]byte, error) {
	if err := content.check(); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(content, "", "\t")
	return append(text, '\n'), err
}

// writeText is write for an encoded content.
func (f *jsonFile[T, P]) writeText(text []byte) error {
	if len(text) > maxFile {
		return fmt.Errorf("%s would be larger than %d bytes", f.tree.Path(f.name), maxFile)
	}
	return f.tree.WriteFile(f.name, ".", temporary+"*", text)
}

// temporary begins the names of files that are being written.
const temporary = ".new-"
