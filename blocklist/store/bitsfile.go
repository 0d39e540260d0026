package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"spamgate/blocklist"
	"spamgate/internal/atomicfile"
)

// bitsFile is the file of the state directory that keeps a list's part of the
// filter. It is a [blocklist.PartFile].
type bitsFile struct {
	tree     atomicfile.Tree
	name     string // "": nothing is kept
	work     string // the directory where files are made that go there; "": beside it
	readOnly bool
}

// Open opens the file.
func (b *bitsFile) Open() (*io.SectionReader, io.Closer, error) {
	if b.name == "" {
		return nil, nil, fs.ErrNotExist
	}
	file, err := b.tree.Open(b.name)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close() // only read from
		return nil, nil, err
	}
	return io.NewSectionReader(file, 0, info.Size()), file, nil
}

// CanSave reports whether there is a file, and it may be written.
func (b *bitsFile) CanSave() bool { return b.name != "" && !b.readOnly }

// Save replaces the file.
func (b *bitsFile) Save(write func(io.Writer) error) error {
	file, err := b.tree.Create(b.workDir(), ".bits-*", 0o600)
	if err != nil {
		return err
	}
	defer file.Discard()
	if err := write(file); err != nil {
		return err
	}
	return file.Commit(b.name)
}

// Scratch returns a scratch in the directory where files are made.
func (b *bitsFile) Scratch() blocklist.Scratch {
	if !b.CanSave() {
		return new(scratchFile)
	}
	return &scratchFile{dir: b.tree.Path(b.workDir())}
}

func (b *bitsFile) workDir() string {
	if b.work == "" {
		return path.Dir(b.name)
	}
	return b.work
}

// scratchMemory is how much a scratchFile keeps in memory.
const scratchMemory = 1 << 20

// scratchFile is a [blocklist.Scratch]. It keeps a little in memory, and what is more in
// a file without a name.
type scratchFile struct {
	dir    string // "": that for temporary files
	memory bytes.Buffer
	file   *os.File
	size   int64
}

func (s *scratchFile) Write(b []byte) (n int, err error) {
	s.size += int64(len(b))
	if s.file == nil && s.memory.Len()+len(b) <= scratchMemory {
		return s.memory.Write(b)
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	return s.file.Write(b)
}

// open moves to a file: in the directory, or if that cannot be written in the one
// for temporary files.
func (s *scratchFile) open() error {
	file, err := os.CreateTemp(s.dir, ".bits-*")
	if err != nil && s.dir != "" {
		file, err = os.CreateTemp("", ".bits-*")
	}
	if err != nil {
		return err
	}
	s.file = file
	// If an open file cannot be removed it stays until somebody clears up.
	if err := os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_, err = s.memory.WriteTo(file)
	return err
}

// Reader returns a reader of what was written.
func (s *scratchFile) Reader() *io.SectionReader {
	if s.file != nil {
		return io.NewSectionReader(s.file, 0, s.size) // closed with the last reference
	}
	return io.NewSectionReader(bytes.NewReader(s.memory.Bytes()), 0, s.size)
}

// Close gives up what was written.
func (s *scratchFile) Close() error {
	if s.file != nil {
		return s.file.Close()
	}
	return nil
}
