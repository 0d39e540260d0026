package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/minio/highwayhash"
)

const (
	magic      = "spamseg\n"
	version    = 1
	versionFor = 2 // with entries for recipients
	headerSize = 256
	tableEntry = 8 + placeSize // first hash, and place
)

// The offsets of the header's fields. See the table in doc.go.
const (
	atVersion    = 8
	atHeaderSize = 12
	atFileSize   = 16
	atKeyCheck   = 24
	atEntries    = 32
	atDuplicates = 40
	atExceptions = 48
	atNextUntil  = 56
	atKinds      = 64
	atBlocks     = 72
	atBlockBytes = 80
	atShared     = 88
	atSharedSize = 96
	atMetaSize   = 104
	atDigest     = 112
	atSource     = 144
	atOptions    = 176
	atMarkers    = 208
	atReserved   = 216
	atChecksum   = 224
)

// header is the header of a segment, with the caller's part.
type header struct {
	keyCheck   uint64 // identifies the key
	entries    uint64 // with markers
	markers    uint64
	duplicates uint64
	exceptions uint64
	nextUntil  int64
	kinds      uint8
	blockCount uint64
	blockBytes uint64
	shared     uint64 // number of shared comments
	sharedSize uint64 // size of their section
	metaSize   uint64
	digest     [32]byte
	caller     Header
}

// headerKey is the key of the header's checksum. That has to match before the segment's
// own key can be checked.
var headerKey = [highwayhash.Size]byte([]byte("spamgate segment header checksum"))

func (k *Key) check() uint64 { return k.Hash([]byte("spamgate segment key")) }

// fileSize returns the size of the whole file.
func (h *header) fileSize() uint64 {
	return headerSize + h.blockBytes + h.sharedSize + h.blockCount*tableEntry + h.metaSize
}

// encode returns the header with its checksum, which also covers meta.
func (h *header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[atVersion:], version)
	if h.markers > 0 {
		binary.LittleEndian.PutUint32(b[atVersion:], versionFor)
		binary.LittleEndian.PutUint64(b[atMarkers:], h.markers)
	}
	binary.LittleEndian.PutUint32(b[atHeaderSize:], headerSize)
	for i, v := range []uint64{
		h.fileSize(), h.keyCheck, h.entries, h.duplicates, h.exceptions, uint64(h.nextUntil), uint64(h.kinds),
		h.blockCount, h.blockBytes, h.shared, h.sharedSize, h.metaSize,
	} {
		binary.LittleEndian.PutUint64(b[atFileSize+8*i:], v)
	}
	copy(b[atDigest:], h.digest[:])
	copy(b[atSource:], h.caller.Source[:])
	copy(b[atOptions:], h.caller.Options[:])
	sum := headerChecksum(b, h.caller.Meta)
	copy(b[atChecksum:], sum[:])
	return b
}

func headerChecksum(b, meta []byte) [32]byte {
	d, _ := highwayhash.New(headerKey[:]) // fails only for a key of another length
	d.Write(b[:atChecksum])
	d.Write(meta)
	return [32]byte(d.Sum(nil))
}

// decodeHeader decodes and checks the header of a whole file.
func decodeHeader(data []byte) (header, error) {
	damaged := func(what string) (header, error) { return header{}, fmt.Errorf("%w: %s", ErrDamaged, what) }
	if len(data) < atFileSize || string(data[:len(magic)]) != magic {
		return damaged("it does not begin like a segment")
	}
	v := binary.LittleEndian.Uint32(data[atVersion:])
	if v != version && v != versionFor {
		return header{}, fmt.Errorf("%w: %d instead of %d or %d", ErrFormat, v, version, versionFor)
	}
	if len(data) < headerSize || binary.LittleEndian.Uint32(data[atHeaderSize:]) != headerSize {
		return damaged("the header is cut short")
	}
	field := func(pos int) uint64 { return binary.LittleEndian.Uint64(data[pos:]) }
	h := header{
		keyCheck: field(atKeyCheck),
		entries:  field(atEntries), duplicates: field(atDuplicates), exceptions: field(atExceptions),
		nextUntil: int64(field(atNextUntil)), kinds: uint8(field(atKinds)),
		blockCount: field(atBlocks), blockBytes: field(atBlockBytes),
		shared: field(atShared), sharedSize: field(atSharedSize), metaSize: field(atMetaSize),
		digest: [32]byte(data[atDigest:]),
		caller: Header{Source: [32]byte(data[atSource:]), Options: [32]byte(data[atOptions:])},
	}
	if v == versionFor {
		h.markers = field(atMarkers)
	}
	size := uint64(len(data))
	if field(atFileSize) != size {
		return damaged(fmt.Sprintf("it has %d bytes, and should have %d", size, field(atFileSize)))
	}
	// Each separately first, so that their sum cannot overflow.
	if h.blockCount > size/tableEntry || h.blockBytes > size || h.sharedSize > size || h.metaSize > size ||
		h.fileSize() != size || size > math.MaxInt {
		return damaged("the sizes of its parts do not add up")
	}
	h.caller.Meta = data[size-h.metaSize:]
	sum := headerChecksum(data[:headerSize], h.caller.Meta)
	if !bytes.Equal(sum[:], data[atChecksum:headerSize]) {
		return damaged("the header does not match its checksum")
	}
	if h.markers > h.entries {
		return damaged("it has more markers than keys")
	}
	return h, nil
}
