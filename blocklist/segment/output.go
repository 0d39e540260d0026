package segment

import (
	"os"
	"path/filepath"
	"sync"

	"spamgate/internal/atomicfile"
)

// TemporaryPrefix begins the names of temporary files. A build writes to its file all
// the time, so a file that did not change for an hour is that of a killed process.
const TemporaryPrefix = ".segment-"

// pattern is the pattern of temporary files for [os.CreateTemp]. No name ends in .seg
// or .bits.
const pattern = TemporaryPrefix + "*"

// temporary makes a file without a name.
func temporary(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err == nil {
		os.Remove(f.Name()) // if this fails, closeTemporary removes it
	}
	return f, err
}

// closeTemporary closes a file made by temporary.
func closeTemporary(f *os.File) {
	f.Close()
	_ = atomicfile.Remove(f.Name()) // of an output, or if temporary could not
}

// heapLimit is the largest size of a segment in the heap.
const heapLimit = 8 << 20

// output is the destination of a segment: a file with a temporary name, a file without
// a name, or the heap.
type output struct {
	path string // the final path; "" for the last two
	file *os.File

	mu   sync.Mutex
	heap []byte // used if file is nil
}

// newOutput makes the output for a segment of about size bytes.
func newOutput(path, dir string, size int64) (*output, error) {
	o := &output{path: path}
	var err error
	switch {
	case path != "":
		var file *atomicfile.File
		if file, err = atomicfile.Create(filepath.Dir(path), pattern, 0o600); err == nil {
			o.file = file.File
		}
	case size > heapLimit:
		o.file, err = temporary(dir)
	}
	return o, err
}

// WriteAt may be called by many goroutines at once.
func (o *output) WriteAt(b []byte, offset int64) (int, error) {
	if o.file != nil {
		n, err := atomicfile.WriteAt(o.file, b, offset)
		if err == nil && o.path != "" {
			startWriteback(o.file, offset, n)
		}
		return n, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if need := int(offset) + len(b); need > len(o.heap) {
		o.heap = append(o.heap, make([]byte, need-len(o.heap))...)
	}
	return copy(o.heap[offset:], b), nil
}

// abort removes the file.
func (o *output) abort() {
	if o.file != nil {
		closeTemporary(o.file)
	}
}

// commit maps the segment that was written, and renames its file.
func (o *output) commit(key *Key) (*Segment, error) {
	if o.file == nil {
		s := &Segment{data: o.heap, key: clone(key)}
		return s, s.load()
	}
	if o.path != "" {
		if err := atomicfile.Sync(o.file); err != nil {
			return nil, err
		}
	}
	s, err := mapSegment(o.file, o.path, key)
	if err != nil {
		return nil, err
	}
	if err := o.publish(); err != nil {
		s.release()
		return nil, err
	}
	s.keep()
	return s, nil
}

// publish renames the file, and closes it.
func (o *output) publish() error {
	if o.path == "" {
		closeTemporary(o.file)
		return nil
	}
	if err := atomicfile.Rename(o.file.Name(), o.path); err != nil {
		return err
	}
	o.file.Close() // synced
	return atomicfile.SyncDir(filepath.Dir(o.path))
}
