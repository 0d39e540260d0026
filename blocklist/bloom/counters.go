package bloom

import "encoding/binary"

// counters is an array of small unsigned numbers, packed without gaps.
type counters struct {
	packed []byte
	width  int    // bits of a counter: 4, 8 or 16
	most   uint16 // the largest number, 2^width - 1
}

// newCounters returns m counters of width bits, all 0.
func newCounters(m uint64, width int) counters {
	return counters{
		packed: make([]byte, (m*uint64(width)+7)/8),
		width:  width,
		most:   uint16(1<<width - 1),
	}
}

// at returns the i-th counter.
func (c *counters) at(i uint64) uint16 {
	switch c.width {
	case 4:
		return uint16(c.packed[i>>1] >> (i & 1 * 4) & 15)
	case 8:
		return uint16(c.packed[i])
	default:
		return binary.LittleEndian.Uint16(c.packed[2*i:])
	}
}

// put sets the i-th counter to n, which must not exceed most.
func (c *counters) put(i uint64, n uint16) {
	switch c.width {
	case 4:
		shift := i & 1 * 4
		c.packed[i>>1] = c.packed[i>>1]&^(15<<shift) | byte(n)<<shift
	case 8:
		c.packed[i] = byte(n)
	default:
		binary.LittleEndian.PutUint16(c.packed[2*i:], n)
	}
}
