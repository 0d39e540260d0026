package segment

import (
	"os"
	"path/filepath"
	"sync"

	"spamgate/internal/durable"
)

// TemporaryPrefix begins the names of temporary files. A build writes to its file all
// the time: what nobody has written to for an hour is of a process that was killed.
const TemporaryPrefix = ".segment-"

// pattern is what temporary files are called, in the sense of [os.CreateTemp].
// None ends in .seg or .bits.
const pattern = TemporaryPrefix + "*"

// temporary makes a file that is gone with its descriptor.
func temporary(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err == nil {
		os.Remove(f.Name()) // fails where open files keep their names
	}
	return f, err
}

// closeTemporary closes a file made by temporary.
func closeTemporary(f *os.File) {
	f.Close()
	os.Remove(f.Name()) // for where open files keep their names
}

// heapLimit is how large a segment without a name may be to live in the heap.
const heapLimit = 8 << 20

// output is where a segment is written to: a file with a temporary name, a file
// without a name, or the heap.
type output struct {
	path string // to be; "" for the last two
	file *os.File

	mu   sync.Mutex
	heap []byte // used where file is nil
}

// newOutput begins a segment of about so many bytes.
func newOutput(path, dir string, size int64) (*output, error) {
	o := &output{path: path}
	var err error
	switch {
	case path != "":
		o.file, err = os.CreateTemp(filepath.Dir(path), pattern)
	case size > heapLimit:
		o.file, err = temporary(dir)
	}
	return o, err
}

// WriteAt may be called by many goroutines at once.
func (o *output) WriteAt(b []byte, offset int64) (int, error) {
	if o.file != nil {
		n, err := o.file.WriteAt(b, offset)
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

// abort leaves nothing behind.
func (o *output) abort() {
	if o.file != nil {
		closeTemporary(o.file)
	}
}

// commit makes the segment of what was written, and gives its file its name.
func (o *output) commit(key *Key) (*Segment, error) {
	if o.file == nil {
		s := &Segment{data: o.heap, key: clone(key)}
		return s, s.load()
	}
	if o.path != "" {
		if err := o.file.Sync(); err != nil {
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

// publish gives the file its name, and closes it.
func (o *output) publish() error {
	if o.path == "" {
		closeTemporary(o.file)
		return nil
	}
	if err := os.Rename(o.file.Name(), o.path); err != nil {
		return err
	}
	o.file.Close() // nothing is left to be written
	return durable.SyncDir(filepath.Dir(o.path))
}
