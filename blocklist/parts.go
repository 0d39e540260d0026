package blocklist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"spamgate/blocklist/bloom"
)

// This file is about a list's part of the filter: the bits that it sets, or its
// fuse filter. It is kept, so that a change of another list need not look at this
// one's entries again. Of a list with few entries, and of a counting filter,
// nothing is kept.

// PartFile keeps one list's part of the filter from one run to the next.
type PartFile interface {
	// Open opens what was saved.
	Open() (*io.SectionReader, io.Closer, error)

	// Save replaces what was saved by what write writes, in one step.
	Save(write func(io.Writer) error) error

	// CanSave reports whether Save is to be called.
	CanSave() bool

	// Scratch returns where a part is written to before it is used or saved.
	Scratch() Scratch
}

// Scratch takes what is written to it.
type Scratch interface {
	io.Writer
	Reader() *io.SectionReader // of all that was written
	io.Closer                  // gives it up
}

// noPartFile keeps parts in memory, and only while they are used.
type noPartFile struct{}

func (noPartFile) Open() (*io.SectionReader, io.Closer, error) {
	return nil, nil, errors.ErrUnsupported
}
func (noPartFile) Save(func(io.Writer) error) error { return errors.ErrUnsupported }
func (noPartFile) CanSave() bool                    { return false }
func (noPartFile) Scratch() Scratch                 { return new(memoryScratch) }

// memoryScratch is a Scratch in memory.
type memoryScratch struct{ bytes.Buffer }

func (s *memoryScratch) Close() error { return nil }
func (s *memoryScratch) Reader() *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(s.Bytes()), 0, int64(s.Len()))
}

// listBits is the encoded bits of one list.
type listBits struct {
	*io.SectionReader
	part bloom.ListBits
}

// reader returns a reader of them from the beginning.
func (b *listBits) reader() io.Reader { return io.NewSectionReader(b, 0, b.Size()) }

// identify returns what tells the index's part of a filter from others: a digest
// of the index, and of all that the bits depend on. It is keyed, since the bits are.
func (x *Index) identify(k *Keys, f *setFilter) [32]byte {
	digest := x.segment.Digest()
	text := fmt.Appendf(nil, "filter bits\n%s\n", digest[:])
	if f.layout.Kind == KindFuse {
		return k.Digest(fmt.Appendf(text, "fuse %d\n", bloom.FuseWidth(f.layout.FPR)))
	}
	family, err := f.layout.family(f.capacity, k.filter[:])
	if err != nil {
		return [32]byte{} // of no filter: there is none of this size
	}
	return k.Digest(fmt.Appendf(text, "%s m=%d k=%d shards=%d\n", family.Name(), family.M(), family.K(), f.layout.shards(f.capacity)))
}

// storedCapacity returns the capacity of the filter that the saved bits are for.
func (x *Index) storedCapacity() (capacity uint64, ok bool) {
	saved, file, err := x.partIn.Open()
	if err != nil {
		return 0, false
	}
	defer file.Close() // only read from
	part, err := bloom.ReadListBits(saved)
	return part.Capacity, err == nil
}

// uniteInto sets the index's bits in bitmaps of the filter. If they are not saved, or
// those that are saved are of another filter, it makes them first. If what was saved
// turns out to be damaged it is forgotten, and the error is not of the segment.
func (x *Index) uniteInto(ctx context.Context, bitmaps *bloom.Sharded, k *Keys, f *setFilter) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := x.identify(k, f)
	if x.bits == nil || x.identity != id {
		bits := x.openBits(id)
		saved := bits != nil
		if !saved {
			var err error
			if bits, err = x.makeBits(ctx, bitmaps, bloom.ListBits{ID: id, Capacity: f.capacity}); err != nil {
				return err
			}
		}
		x.bits, x.fuse, x.identity, x.saved = bits, nil, id, saved
	}
	err := bitmaps.Unite(x.bits.reader(), x.bits.part)
	if err != nil {
		x.bits, x.unusable = nil, x.unusable || x.saved
	}
	return err
}

// openBits opens the saved bits; nil if there are none that can be read and have
// the identity. The bits in them are checked as they are read.
func (x *Index) openBits(id [32]byte) *listBits {
	if x.unusable {
		return nil
	}
	saved, file, err := x.partIn.Open()
	if err != nil {
		return nil
	}
	part, err := bloom.ReadListBits(saved)
	if err != nil || part.ID != id {
		file.Close() // only read from
		return nil
	}
	return &listBits{saved, part} // the file is closed with the last reference
}

// makeBits makes the index's bits for filters like bitmaps.
func (x *Index) makeBits(ctx context.Context, bitmaps *bloom.Sharded, part bloom.ListBits) (*listBits, error) {
	w := x.partIn.Scratch()
	shards := len(bitmaps.Shards())
	if err := bloom.WriteListBits(ctx, w, part, bitmaps.Family(), shards, x.keys(), x.segment.ScanKeys); err != nil {
		w.Close()
		return nil, err
	}
	return &listBits{w.Reader(), part}, nil
}

// fuseFilter returns the index's fuse filter.
func (x *Index) fuseFilter(ctx context.Context, k *Keys, f *setFilter) (*bloom.Fuse, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	id := x.identify(k, f)
	if x.fuse != nil && x.identity == id {
		return x.fuse, nil
	}
	if stored := x.openBits(id); stored != nil {
		if fuse, err := bloom.ReadFuse(stored.reader(), stored.part); err == nil {
			x.bits, x.fuse, x.identity, x.saved = nil, fuse, id, true
			return fuse, nil
		}
	}
	fuse, err := bloom.NewFuse(ctx, bloom.FuseWidth(f.layout.FPR), x.keys(), x.segment.ScanKeys)
	if err != nil {
		return nil, err
	}
	x.bits, x.fuse, x.identity, x.saved = nil, fuse, id, false
	return fuse, nil
}

// saveBits saves what is kept, for the next run, unless it is saved already.
// Filters may be made meanwhile.
func (x *Index) saveBits() error {
	x.mu.Lock()
	bits, fuse, id := x.bits, x.fuse, x.identity
	idle := x.saved || bits == nil && fuse == nil
	x.mu.Unlock()
	if idle || !x.partIn.CanSave() {
		return nil
	}
	err := x.partIn.Save(func(w io.Writer) (err error) {
		if fuse != nil {
			return fuse.WriteBits(w, bloom.ListBits{ID: id})
		}
		_, err = io.Copy(w, bits.reader())
		return err
	})
	if err != nil {
		return fmt.Errorf("keeping filter bits: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.bits != bits || x.fuse != fuse {
		return nil // another filter has asked meanwhile
	}
	x.saved, x.unusable = true, false
	if bits != nil {
		if saved := x.openBits(id); saved != nil { // the scratch may go
			x.bits = saved
		}
	}
	return nil
}
