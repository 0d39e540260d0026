package hits

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"spamgate/internal/atomicfile"
)

// A file holds, in little-endian order: magic; the key, when recording began
// (seconds since 1970), the day until which entries were forgotten, today's day
// and matches, and the number of entries, 8 bytes each; the hashes, ascending, 8
// bytes each; their days, 2 bytes each; the SHA-256 of all that.
const (
	magic      = "spamgate hits 1\n"
	headerSize = len(magic) + 5*8
	entrySize  = 8 + 2

	// maxFile exceeds any file that a Log can write.
	maxFile = 1 << 30
)

// Why a file is not used. Use errors.Is.
var (
	ErrDamaged = errors.New("damaged")
	ErrKey     = errors.New("written under another key")
)

// Read reads a list's file, by its name in the state directory. If there is none the
// error is fs.ErrNotExist.
func Read(stateDir, name string, key uint64) (*Snapshot, error) {
	tree := atomicfile.In(stateDir)
	text, err := tree.ReadFile(name, maxFile)
	if err != nil {
		return nil, err
	}
	s, err := decode(text, key)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: tree.Path(name), Err: err}
	}
	return s, nil
}

func (s *Snapshot) encode(key uint64) []byte {
	b := make([]byte, 0, headerSize+len(s.hashes)*entrySize+sha256.Size)
	b = append(b, magic...)
	for _, v := range [...]uint64{key, uint64(s.Since.Unix()), uint64(s.forgotten), s.today, uint64(len(s.hashes))} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, hash := range s.hashes {
		b = binary.LittleEndian.AppendUint64(b, hash)
	}
	for _, day := range s.days {
		b = binary.LittleEndian.AppendUint16(b, uint16(day))
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func decode(b []byte, key uint64) (*Snapshot, error) {
	if len(b) < headerSize+sha256.Size || !bytes.HasPrefix(b, []byte(magic)) {
		return nil, fmt.Errorf("%w: it is not a file of this format", ErrDamaged)
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if current := sha256.Sum256(b); !bytes.Equal(current[:], sum) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	var head [5]uint64
	for i := range head {
		head[i] = binary.LittleEndian.Uint64(b[len(magic)+8*i:])
	}
	body := b[headerSize:]
	n := head[4]
	if n > uint64(len(body)/entrySize) || n*entrySize != uint64(len(body)) {
		return nil, fmt.Errorf("%w: %d entries do not fit its size", ErrDamaged, n)
	}
	if head[2] > math.MaxUint16 {
		return nil, fmt.Errorf("%w: invalid day %d", ErrDamaged, head[2])
	}
	if head[0] != key {
		return nil, ErrKey
	}
	s := &Snapshot{
		Since:     time.Unix(int64(head[1]), 0).UTC(),
		forgotten: Day(head[2]),
		today:     head[3],
		hashes:    make([]uint64, n),
		days:      make([]Day, n),
	}
	for i := range s.hashes {
		s.hashes[i] = binary.LittleEndian.Uint64(body[8*i:])
		s.days[i] = Day(binary.LittleEndian.Uint16(body[8*int(n)+2*i:]))
		if i > 0 && s.hashes[i] <= s.hashes[i-1] {
			return nil, fmt.Errorf("%w: its entries are out of order", ErrDamaged)
		}
	}
	return s, nil
}
