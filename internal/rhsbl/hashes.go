package rhsbl

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"

	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
)

// hashes finds the entry of an address by the address's SHA-1 or MD5. An item has the first
// half of the sum's first 64 bits, and the first half of the hash by which the segment is
// ordered: there the entry is, and its text tells whether it is the right one. An address
// takes 16 bytes.
type hashes struct {
	segment   *segment.Segment
	sha1, md5 []uint64 // in order
}

// newHashes reads a list.
func newHashes(ctx context.Context, seg *segment.Segment) (*hashes, error) {
	h := &hashes{segment: seg}
	if seg.Kinds()&^(1<<sender.KindAddress) == 0 {
		h.sha1, h.md5 = make([]uint64, 0, seg.Len()), make([]uint64, 0, seg.Len())
	}
	err := scan(ctx, seg, func(hash uint64, key []byte) {
		if !isAddress(key) {
			return
		}
		s, m := sha1.Sum(key), md5.Sum(key)
		h.sha1 = append(h.sha1, item(s[:], hash))
		h.md5 = append(h.md5, item(m[:], hash))
	})
	if err != nil {
		return nil, err
	}
	h.sha1, h.md5 = slices.Clip(h.sha1), slices.Clip(h.md5)
	slices.Sort(h.sha1)
	slices.Sort(h.md5)
	return h, nil
}

// isAddress reports whether an entry is of one address.
func isAddress(key []byte) bool {
	pos := bytes.LastIndexByte(key, '@')
	return pos > 0 && pos < len(key)-1
}

// item returns the item of an entry.
func item(sum []byte, hash uint64) uint64 {
	return uint64(binary.BigEndian.Uint32(sum))<<32 | hash>>32
}

// find returns the address that has a sum; "" if the list has none.
func (h *hashes) find(sum []byte) (address string, err error) {
	items := h.sha1
	if len(sum) == md5.Size {
		items = h.md5
	}
	first := item(sum, 0)
	i, _ := slices.BinarySearch(items, first)
	for ; i < len(items) && items[i]>>32 == first>>32 && address == ""; i++ {
		from := items[i] << 32
		err = h.segment.Scan(from, from+math.MaxUint32, func(_ uint64, key []byte) bool {
			if hasSum(key, sum) {
				address = string(key)
			}
			return address == ""
		})
		if err != nil {
			return "", err
		}
	}
	return address, nil
}

// hasSum reports whether a key is an address that has a sum.
func hasSum(key, sum []byte) bool {
	if !isAddress(key) {
		return false
	}
	if len(sum) == md5.Size {
		own := md5.Sum(key)
		return bytes.Equal(own[:], sum)
	}
	own := sha1.Sum(key)
	return bytes.Equal(own[:], sum)
}

// parseSum reads a sum in lower case as it is asked for.
func parseSum(s string) (sum []byte, ok bool) {
	switch len(s) {
	case hex.EncodedLen(sha1.Size), hex.EncodedLen(md5.Size): // the latter may be base32 of a SHA-1, too
		if sum, err := hex.DecodeString(s); err == nil {
			return sum, true
		}
	}
	for _, size := range []int{sha1.Size, md5.Size} {
		if len(s) == (8*size+4)/5 {
			return parseBase32(s, size)
		}
	}
	return nil, false
}

// base32 are rspamd's digits: those of z-base-32, but the lowest bits come first.
const base32 = "ybndrfg8ejkmcpqxot1uwisza345h769"

// parseBase32 reads as many bytes as rspamd writes.
func parseBase32(s string, size int) (sum []byte, ok bool) {
	bits, have := uint(0), 0
	for i := range len(s) {
		digit := strings.IndexByte(base32, s[i])
		if digit < 0 {
			return nil, false
		}
		bits |= uint(digit) << have
		for have += 5; have >= 8; have -= 8 {
			sum = append(sum, byte(bits))
			bits >>= 8
		}
	}
	return sum, len(sum) == size && bits == 0
}
