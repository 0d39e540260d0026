package bloom

import (
	"encoding/binary"
	"io"
	"unsafe"

	"github.com/FastFilter/xorfilter"
)

// The body of a fuse filter's bits has for each of the filters fuseHeader bytes
// (the seed, the length of a segment, the number of segments that the first place
// may be in, and the number of fingerprints, 0 for a filter without a key) and then
// its fingerprints, in little-endian order.
const fuseHeader = 8 + 4 + 4 + 4

// fuseEncoding returns the encoding of a width.
func fuseEncoding(width int) uint32 { return fuseBits<<8 | uint32(width) }

// WriteBits writes the filter, for [ReadFuse] to read.
func (f *Fuse) WriteBits(w io.Writer, listBits ListBits) error {
	h := bitsHeader{family: "fuse"}
	h.ListBits, h.Encoding = listBits, fuseEncoding(f.width)
	h.Keys, h.Count, h.Length = f.keys, uint64(len(f.filters)), uint64(len(f.filters))*fuseHeader+f.Bytes()
	p := newBitsWriter(w, h)
	for i := range f.filters {
		switch g := &f.filters[i]; f.width {
		case 8:
			writeFuse(p, &g.narrow)
		case 16:
			writeFuse(p, &g.middle)
		default:
			writeFuse(p, &g.wide)
		}
	}
	return p.close()
}

func writeFuse[T xorfilter.Unsigned](p *bitsWriter, f *xorfilter.BinaryFuse[T]) {
	b := make([]byte, 0, fuseHeader)
	b = binary.LittleEndian.AppendUint64(b, f.Seed)
	for _, n := range []uint32{f.SegmentLength, f.SegmentCount, uint32(len(f.Fingerprints))} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	p.write(b)
	buf := make([]byte, 0, pieceSize)
	for _, v := range f.Fingerprints {
		if len(buf) == cap(buf) {
			p.write(buf)
			buf = buf[:0]
		}
		switch unsafe.Sizeof(v) {
		case 1:
			buf = append(buf, byte(v))
		case 2:
			buf = binary.LittleEndian.AppendUint16(buf, uint16(v))
		default:
			buf = binary.LittleEndian.AppendUint32(buf, uint32(v))
		}
	}
	p.write(buf)
}

// ReadFuse reads a filter that WriteBits wrote.
func ReadFuse(r io.Reader, want ListBits) (*Fuse, error) {
	p, err := openBits(r, want, fuseEncoding(8), fuseEncoding(16), fuseEncoding(32))
	if err != nil {
		return nil, err
	}
	f := &Fuse{width: int(p.Encoding & 0xFF), keys: p.Keys}
	for range p.Count {
		var g fuseFilter
		switch f.width {
		case 8:
			err = readFuse(p, &g.narrow)
		case 16:
			err = readFuse(p, &g.middle)
		default:
			err = readFuse(p, &g.wide)
		}
		if err != nil {
			return nil, err
		}
		f.filters = append(f.filters, g)
	}
	if err := p.close(); err != nil {
		return nil, err
	}
	return f, nil
}

// readFuse reads one filter. It checks its numbers, so that Contains never reads
// beyond the fingerprints.
func readFuse[T xorfilter.Unsigned](p *bitsReader, f *xorfilter.BinaryFuse[T]) error {
	var b [fuseHeader]byte
	if _, err := io.ReadFull(p, b[:]); err != nil {
		return truncated(err)
	}
	f.Seed = binary.LittleEndian.Uint64(b[:])
	length, segments, places := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:]), binary.LittleEndian.Uint32(b[16:])
	if places == 0 {
		return nil
	}
	size := unsafe.Sizeof(T(0))
	if length == 0 || length&(length-1) != 0 || segments == 0 || (uint64(segments)+2)*uint64(length) != uint64(places) || uint64(places)*uint64(size) > p.left {
		return damaged("the sizes of a fuse filter do not fit")
	}
	f.SegmentLength, f.SegmentLengthMask = length, length-1
	f.SegmentCount, f.SegmentCountLength = segments, segments*length
	f.Fingerprints = make([]T, places)
	for rest := f.Fingerprints; len(rest) > 0; {
		piece := p.buf[:min(len(p.buf), len(rest)*int(size))]
		if _, err := io.ReadFull(p, piece); err != nil {
			return truncated(err)
		}
		n := len(piece) / int(size)
		for i := range rest[:n] {
			switch size {
			case 1:
				rest[i] = T(piece[i])
			case 2:
				rest[i] = T(binary.LittleEndian.Uint16(piece[2*i:]))
			default:
				rest[i] = T(binary.LittleEndian.Uint32(piece[4*i:]))
			}
		}
		rest = rest[n:]
	}
	return nil
}
