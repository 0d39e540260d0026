package bloom

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/minio/highwayhash"
)

// Why stored bits cannot be used. Use errors.Is.
var (
	ErrDamaged = errors.New("damaged")
	ErrOther   = errors.New("made for another filter, for other keys or by another version of the program")
)

// ListBits identifies stored bits: the share that one list has in a filter of
// several lists. The stored form is
//
//	offset  bytes
//	0       8      "SPAMBITS"
//	8       4      version of the format, 3
//	12      4      encoding of the body: 1 sparse, 2 dense, 3 fuse
//	16      32     ID
//	48      8      Capacity
//	56      8      number of keys of a fuse filter, else 0
//	64      8      number of positions in a sparse body, of filters in a fuse body, else 0
//	72      8      length of the body
//	80      4      number of shards; 0 for a fuse filter, as in the next three fields
//	84      4      number of hash functions of the family
//	88      8      bits of each shard
//	96      8      HighwayHash-64 of the family's indices for a fixed key
//	104     8      length of the family's name
//	112            the family's name
//	+0      8      checksum of all bytes before it
//	+8             body
//	+0      8      checksum of the body
//
// in little-endian numbers. Checksums are HighwayHash-64 under a key of zeros:
// they detect damage, but not a forger. Bits are read from beginning to end, and
// each read compares the body with its checksum, so the file may change or be cut
// at any time.
type ListBits struct {
	// ID identifies the keys and the filter; the caller chooses it. Bits with
	// another ID are refused with [ErrOther].
	ID [32]byte

	// Capacity is the number of keys that the filter is made for. It is the
	// caller's too; this package only stores it.
	Capacity uint64
}

const (
	bitsMagic      = "SPAMBITS"
	bitsVersion    = 3
	checksumSize   = 8
	bitsHeaderSize = 112 + checksumSize // without the family's name
	maxFamilyName  = 1 << 12
)

// Encodings of a body.
const (
	sparseBits = 1 // the gaps between the set bits, as varints
	denseBits  = 2 // the bitmaps
	fuseBits   = 3 // binary fuse filters
)

// bitsHeader is the header of stored bits. Its embedded part is stored as it is.
type bitsHeader struct {
	storedHeader
	family string
}

type storedHeader struct {
	Magic             [8]byte
	Version, Encoding uint32
	ListBits
	Keys, Count, Length uint64
	Shape               shape
	NameLength          uint64
}

// shape is the layout of a sharded filter, apart from its family's name.
type shape struct {
	Shards, Hashes uint32
	Bits           uint64 // of each shard
	Check          uint64 // tells families of one name apart by their secret key
}

// header returns a header for bits of this filter.
func (s *Sharded) header(bits ListBits) bitsHeader {
	family := s.Family()
	var indices []byte
	for _, i := range family.AppendIndices(nil, []byte(bitsMagic)) {
		indices = binary.LittleEndian.AppendUint64(indices, i)
	}
	h := bitsHeader{family: family.Name()}
	h.ListBits = bits
	h.Shape = shape{
		Shards: uint32(len(s.shards)), Hashes: uint32(s.K()), Bits: family.M(),
		Check: highwayhash.Sum64(indices, checksumKey[:]),
	}
	return h
}

// checkFilter reports how the filter of stored bits differs from the wanted one.
func (h *bitsHeader) checkFilter(want *bitsHeader) error {
	if h.family == want.family && h.Shape == want.Shape {
		return nil
	}
	stored, wanted := h.filter(), want.filter()
	if stored == wanted {
		wanted += " under another secret key"
	}
	return fmt.Errorf("filter bits: %w: the bits are of %s; this filter is %s", ErrOther, stored, wanted)
}

// filter describes the filter that the bits are of.
func (h *bitsHeader) filter() string {
	return fmt.Sprintf("family %s, k = %d, %d × %d bits", h.family, h.Shape.Hashes, h.Shape.Shards, h.Shape.Bits)
}

// encode returns the header as it is stored.
func (h *bitsHeader) encode() []byte {
	copy(h.Magic[:], bitsMagic)
	h.Version, h.NameLength = bitsVersion, uint64(len(h.family))
	b, _ := binary.Append(nil, binary.LittleEndian, &h.storedHeader) // cannot fail: all sizes are fixed
	b = append(b, h.family...)
	return binary.LittleEndian.AppendUint64(b, highwayhash.Sum64(b, checksumKey[:]))
}

// readBitsHeader reads a header, whatever its ID.
func readBitsHeader(r io.Reader) (h bitsHeader, err error) {
	b := make([]byte, bitsHeaderSize-checksumSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return h, truncated(err)
	}
	binary.Decode(b, binary.LittleEndian, &h.storedHeader)
	switch {
	case string(h.Magic[:]) != bitsMagic:
		return h, damaged("not a file of filter bits")
	case h.Version != bitsVersion:
		return h, fmt.Errorf("filter bits: %w: format version %d", ErrOther, h.Version)
	case h.NameLength > maxFamilyName:
		return h, damaged("the family's name is too long")
	}
	rest := make([]byte, h.NameLength+checksumSize)
	if _, err := io.ReadFull(r, rest); err != nil {
		return h, truncated(err)
	}
	name, sum := rest[:h.NameLength], rest[h.NameLength:]
	if binary.LittleEndian.Uint64(sum) != highwayhash.Sum64(append(b, name...), checksumKey[:]) {
		return h, damaged("the header's checksum is wrong")
	}
	h.family = string(name)
	return h, nil
}

// ReadListBits reads only the header of stored bits, and returns what it
// identifies.
func ReadListBits(r io.Reader) (ListBits, error) {
	h, err := readBitsHeader(r)
	return h.ListBits, err
}

// truncated returns the error for bits that end too early or cannot be read.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("cut short")
	}
	return fmt.Errorf("reading filter bits: %w", err)
}

func damaged(what string) error { return fmt.Errorf("filter bits: %w: %s", ErrDamaged, what) }
