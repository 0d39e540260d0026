package blocklist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"spamgate/blocklist/bloom"
	"spamgate/internal/durable"
)

// parts is what a version keeps of its own share of the filter, so that a change
// of another list need not look at this one's entries again: the bits it sets,
// in a file, or its fuse filter. Of a list with few entries, and of a counting
// filter, nothing is kept.
type parts struct {
	mu       sync.Mutex
	bits     *listBits   // of the last filter that asked; nil: none yet
	fuse     *bloom.Fuse // likewise
	identity [32]byte    // what bits or fuse are of
	saved    bool        // they are what the file at bitsAt holds
	unusable bool        // what is at bitsAt is not, and not to be looked at
}

// listBits is the encoded bits of one list.
type listBits struct {
	io.ReaderAt
	size int64
	part bloom.Part
}

// reader reads them from the beginning.
func (b *listBits) reader() io.Reader { return io.NewSectionReader(b, 0, b.size) }

// identify says what the version's share of a filter is of: the index, and all
// that the bits depend on. It is keyed, since the bits are.
func (v *version) identify(k *keys, f *setFilter) [32]byte {
	digest := v.segment.Digest()
	text := fmt.Appendf(nil, "filter bits\n%s\n", digest[:])
	if f.layout.Kind == KindFuse {
		return k.digest(fmt.Appendf(text, "fuse %d\n", bloom.FuseWidth(f.layout.FPR)))
	}
	family, err := f.layout.family(f.room, k.filter[:])
	if err != nil {
		return [32]byte{} // of no filter: there is none of this size
	}
	return k.digest(fmt.Appendf(text, "%s m=%d k=%d shards=%d\n", family.Name(), family.M(), family.K(), f.layout.shards(f.room)))
}

// storedRoom is the room of the filter that the bits of bitsAt are for.
func (v *version) storedRoom() (room uint64, ok bool) {
	if v.bitsAt.name == "" {
		return 0, false
	}
	file, err := v.bitsAt.open()
	if err != nil {
		return 0, false
	}
	defer file.Close() // only read from
	part, err := bloom.ReadPart(file)
	return part.Room, err == nil
}

// uniteInto sets the version's bits in bitmaps of the filter. Where they are not
// kept, or what is kept is of another filter, they are made first. If what was
// kept turns out to be damaged it is forgotten, and the error is not of the
// segment.
func (v *version) uniteInto(ctx context.Context, bitmaps *bloom.Sharded, k *keys, f *setFilter) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := v.identify(k, f)
	if v.bits == nil || v.identity != id {
		bits := v.openBits(id)
		saved := bits != nil
		if !saved {
			var err error
			if bits, err = v.makeBits(ctx, bitmaps, bloom.Part{ID: id, Room: f.room}); err != nil {
				return err
			}
		}
		v.bits, v.fuse, v.identity, v.saved = bits, nil, id, saved
	}
	err := bitmaps.Unite(v.bits.reader(), v.bits.part)
	if err != nil {
		v.bits, v.unusable = nil, v.unusable || v.saved
	}
	return err
}

// openBits opens the file of the version's bits; nil if there is none that can be
// read and has the identity. The bits in it are checked as they are read.
func (v *version) openBits(id [32]byte) *listBits {
	if v.bitsAt.name == "" || v.unusable {
		return nil
	}
	file, err := v.bitsAt.open()
	if err != nil {
		return nil
	}
	part, err := bloom.ReadPart(file)
	info, errStat := file.Stat()
	if err != nil || errStat != nil || part.ID != id {
		file.Close() // only read from
		return nil
	}
	return &listBits{file, info.Size(), part} // the file is closed with the last reference
}

// makeBits makes the version's bits for filters like bitmaps.
func (v *version) makeBits(ctx context.Context, bitmaps *bloom.Sharded, part bloom.Part) (*listBits, error) {
	var w spill
	if v.bitsAt.name != "" && !v.readOnly {
		w.dir = v.bitsAt.tree.Path(v.bitsAt.workDir())
	}
	shards := len(bitmaps.Shards())
	if err := bloom.WritePart(ctx, &w, part, bitmaps.Family(), shards, v.keys(), v.segment.Scan); err != nil {
		w.close()
		return nil, err
	}
	return &listBits{w.readerAt(), w.size, part}, nil
}

// fuseFilter is the version's fuse filter.
func (v *version) fuseFilter(ctx context.Context, k *keys, f *setFilter) (*bloom.Fuse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := v.identify(k, f)
	if v.fuse != nil && v.identity == id {
		return v.fuse, nil
	}
	if stored := v.openBits(id); stored != nil {
		if fuse, err := bloom.ReadFuse(stored.reader(), stored.part); err == nil {
			v.bits, v.fuse, v.identity, v.saved = nil, fuse, id, true
			return fuse, nil
		}
	}
	fuse, err := bloom.NewFuse(ctx, bloom.FuseWidth(f.layout.FPR), v.keys(), v.segment.Scan)
	if err != nil {
		return nil, err
	}
	v.bits, v.fuse, v.identity, v.saved = nil, fuse, id, false
	return fuse, nil
}

// saveBits puts what is kept into the file at bitsAt, for the next run: in one
// step, and only where it is not there already. Filters may be made meanwhile.
func (v *version) saveBits() error {
	v.mu.Lock()
	bits, fuse, id := v.bits, v.fuse, v.identity
	idle := v.saved || v.readOnly || v.bitsAt.name == "" || bits == nil && fuse == nil
	v.mu.Unlock()
	if idle {
		return nil
	}
	if err := v.writeBits(bits, fuse, id); err != nil {
		return fmt.Errorf("keeping filter bits: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bits != bits || v.fuse != fuse {
		return nil // another filter has asked meanwhile
	}
	v.saved, v.unusable = true, false
	if bits != nil {
		if kept := v.openBits(id); kept != nil { // the file without a name may go
			v.bits = kept
		}
	}
	return nil
}

// bitsPlace is where the bits of a version are kept: a file of the state directory.
type bitsPlace struct {
	tree durable.Tree
	name string // "": nowhere
	work string // the directory where files are made that go there; "": beside it
}

func (p *bitsPlace) open() (*os.File, error) { return p.tree.Open(p.name) }

func (p *bitsPlace) workDir() string {
	if p.work == "" {
		return path.Dir(p.name)
	}
	return p.work
}

func (v *version) writeBits(bits *listBits, fuse *bloom.Fuse, id [32]byte) error {
	file, err := v.bitsAt.tree.Create(v.bitsAt.workDir(), ".bits-*", 0o600)
	if err != nil {
		return err
	}
	defer file.Discard()
	if fuse != nil {
		err = fuse.WritePart(file, bloom.Part{ID: id})
	} else {
		_, err = io.Copy(file, bits.reader())
	}
	if err != nil {
		return err
	}
	return file.Commit(v.bitsAt.name)
}

// spillSize is how much a spill keeps in memory.
const spillSize = 1 << 20

// spill takes what is written to it into memory, and what is more than a little
// into a file without a name.
type spill struct {
	dir    string
	memory bytes.Buffer
	file   *os.File
	size   int64
}

func (s *spill) Write(b []byte) (n int, err error) {
	s.size += int64(len(b))
	if s.file == nil && s.memory.Len()+len(b) <= spillSize {
		return s.memory.Write(b)
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	return s.file.Write(b)
}

// open goes on with a file: in the directory, or where that cannot be written
// in that for temporary files.
func (s *spill) open() error {
	file, err := os.CreateTemp(s.dir, ".bits-*")
	if err != nil && s.dir != "" {
		file, err = os.CreateTemp("", ".bits-*")
	}
	if err != nil {
		return err
	}
	s.file = file
	// Where an open file cannot be removed it stays until somebody clears up.
	if err := os.Remove(file.Name()); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_, err = s.memory.WriteTo(file)
	return err
}

func (s *spill) readerAt() io.ReaderAt {
	if s.file != nil {
		return s.file // closed with the last reference
	}
	return bytes.NewReader(s.memory.Bytes())
}

// close gives up what was written.
func (s *spill) close() {
	if s.file != nil {
		s.file.Close()
	}
}
