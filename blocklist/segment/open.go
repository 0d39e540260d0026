package segment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"github.com/minio/highwayhash"
)

// Map maps the file of a segment that was made with this key. It checks the header
// and the table of blocks; each block is checked when it is first read. The path is
// for errors and [Segment.Path]. The file may be closed afterwards. The error wraps
// [ErrDamaged], [ErrFormat] or [ErrKey], or is the file system's.
func Map(f *os.File, path string, key *Key) (*Segment, error) {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s: %w: it is not a regular file", path, ErrDamaged))
	}
	s, err := mapSegment(f, path, key)
	if err != nil {
		return nil, err
	}
	s.keep()
	return s, nil
}

// mapSegment maps a segment. The caller must release it or keep it.
func mapSegment(f *os.File, path string, key *Key) (*Segment, error) {
	data, unmap, err := mapFile(f)
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: path, Err: err}
	}
	s := &Segment{data: data, unmap: unmap, path: path, key: clone(key)}
	if err := s.load(); err != nil {
		s.release()
		return nil, s.failed(err)
	}
	return s, nil
}

func clone(key *Key) *Key {
	own := *key
	return &own
}

// keep unmaps the memory when nothing refers to the segment any more.
func (s *Segment) keep() {
	if s.unmap != nil {
		runtime.AddCleanup(s, s.unmap, s.data)
	}
}

// release unmaps the memory now. The segment cannot be used afterwards.
func (s *Segment) release() {
	if s.unmap != nil {
		s.unmap(s.data)
	}
	s.data = nil
}

// load checks the header and those parts of data that every lookup needs.
func (s *Segment) load() (err error) {
	defer s.catch(panicOnFault(), &err)
	if s.header, err = decodeHeader(s.data); err != nil {
		return err
	}
	s.caller.Meta = bytes.Clone(s.caller.Meta)
	if s.keyCheck != s.key.check() {
		return ErrKey
	}
	rest := s.data[headerSize:]
	cut := func(n uint64) (part []byte) {
		part, rest = rest[:n:n], rest[n:]
		return part
	}
	s.blocks = cut(s.blockBytes)
	// Copies, since overwriting a mapped file would change what was checked.
	s.comments = bytes.Clone(cut(s.sharedSize))
	s.firsts = bytes.Clone(cut(8 * s.blockCount))
	s.places = bytes.Clone(cut(placeSize * s.blockCount))
	if digest(s.key, s.data[atEntries:atMetaSize], s.comments, s.firsts, s.places) != s.digest {
		return fmt.Errorf("%w: the table of blocks or the comments do not match their checksum", ErrDamaged)
	}
	s.verified = make([]atomic.Uint32, (s.blockCount+31)/32)
	return nil
}

// digest returns a digest of all entries. It covers the blocks by their checksums in
// the table.
func digest(key *Key, parts ...[]byte) [32]byte {
	d, _ := highwayhash.New(key[:]) // fails for a key of another length alone
	for _, part := range parts {
		d.Write(part)
	}
	return [32]byte(d.Sum(nil))
}

// failed adds the name of the segment to an error.
func (s *Segment) failed(err error) error {
	name := s.path
	if name == "" {
		name = "segment without a name"
	}
	return fmt.Errorf("%s: %w", name, err)
}

// panicOnFault turns a fault of the mapping (its file was cut, or the disk fails) into
// a panic, for catch. It returns the setting before.
func panicOnFault() bool { return debug.SetPanicOnFault(true) }

// catch is deferred after panicOnFault. It restores the setting, and turns a fault of
// the mapping into an error. Any other panic continues.
func (s *Segment) catch(before bool, err *error) {
	debug.SetPanicOnFault(before)
	if p := recover(); p != nil {
		if !s.faulted(p) {
			panic(p)
		}
		*err = s.failed(fmt.Errorf("%w: the file was cut while in use, or cannot be read", ErrDamaged))
	}
	runtime.KeepAlive(s) // or data might be unmapped while it is read
}

// faulted reports whether reading data caused a panic.
func (s *Segment) faulted(p any) bool {
	err, _ := p.(error)
	var fault interface{ Addr() uintptr } // see debug.SetPanicOnFault
	if !errors.As(err, &fault) || len(s.data) == 0 {
		return false
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(s.data)))
	return fault.Addr() >= start && fault.Addr()-start < uintptr(len(s.data))
}
