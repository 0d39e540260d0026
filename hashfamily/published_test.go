package hashfamily

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/minio/highwayhash"
	"github.com/twmb/murmur3"
	"github.com/zeebo/xxh3"
)

// TestHighwayHashPublished holds the library to values of the reference
// implementation: google/highwayhash, highwayhash_test.cc, kExpected128, for the
// key 0, 1, … 31 and the data 0, 1, … length-1.
func TestHighwayHashPublished(t *testing.T) {
	for _, c := range []struct {
		length int
		h1, h2 uint64
	}{
		{0, 0x0FED268F9D8FFEC7, 0x33565E767F093E6F},
		{1, 0xD6B0A8893681E7A8, 0xDC291DF9EB9CDCB4},
		{2, 0x3D15AD265A16DA04, 0x78085638DC32E868},
		{3, 0x0607621B295F0BEB, 0xBFE69A0FD9CEDD79},
		{16, 0x414460FFD5A401AD, 0x029EA3D5019F18C8},
		{31, 0x06E7B465E8A57C29, 0x52415E3A07F5D446},
		{32, 0x1984DF66C1434AAA, 0x16FC1958F9B3E4B9},
		{33, 0x111678AFE0C6C36C, 0xF958B59DE5A2849D},
		{63, 0x74BD7018022F3EF0, 0x3AEA94A8AD5F4BCB},
	} {
		data := make([]byte, c.length)
		for i := range data {
			data[i] = byte(i)
		}
		sum := highwayhash.Sum128(data, publicKey)
		if h1, h2 := binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:]); h1 != c.h1 || h2 != c.h2 {
			t.Errorf("%d bytes: %#x, %#x; want %#x, %#x", c.length, h1, h2, c.h1, c.h2)
		}
	}
}

// TestMurmur3Published holds the library to the value that implementations of
// MurmurHash3_x64_128 give for their common example.
func TestMurmur3Published(t *testing.T) {
	for text, want := range map[string]string{
		"": "00000000000000000000000000000000",
		"The quick brown fox jumps over the lazy dog": "e34bbc7bbc071b6c7a433ca9c49a9347",
	} {
		h1, h2 := murmur3.Sum128([]byte(text))
		if got := fmt.Sprintf("%016x%016x", h1, h2); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestXXH3Published holds the library to the values by which xxHash's own tool
// checks itself (Cyan4973/xxHash, XSUM_testXXH3), over that tool's bytes.
func TestXXH3Published(t *testing.T) {
	const seed = 11400714785074694797
	data := make([]byte, 2367)
	for i, state := 0, uint64(2654435761); i < len(data); i++ {
		data[i] = byte(state >> 56)
		state *= seed
	}
	for _, c := range []struct {
		length        int
		plain, seeded uint64 // with the seed 0, with the seed above
	}{
		{0, 0x2D06800538D394C2, 0xA8A6B918B2F0364A},
		{1, 0xC44BDFF4074EECDB, 0x032BE332DD766EF8},
		{6, 0x27B56A84CD2D7325, 0x84589C116AB59AB9},
		{12, 0xA713DAF0DFBB77E7, 0xE7303E1B2336DE0E},
		{24, 0xA3FE70BF9D3510EB, 0x850E80FC35BDD690},
		{48, 0x397DA259ECBA1F11, 0xADC2CBAA44ACC616},
		{80, 0xBCDEFBBB2C47C90A, 0xC6DD0CB699532E73},
		{195, 0xCD94217EE362EC3A, 0xBA68003D370CB3D9},
		{403, 0xCDEB804D65C6DEA4, 0x6259F6ECFD6443FD},
		{512, 0x617E49599013CB6B, 0x3CE457DE14C27708},
		{2048, 0xDD59E2C3A5F038E0, 0x66F81670669ABABC},
		{2240, 0x6E73A90539CF2948, 0x757BA8487D1B5247},
		{2367, 0xCB37AEB9E5D361ED, 0xD2DB3415B942B42A},
	} {
		h0, h1 := xxh3.HashSeed(data[:c.length], 0), xxh3.HashSeed(data[:c.length], seed)
		if h0 != c.plain || h1 != c.seeded {
			t.Errorf("%d bytes: %#x, %#x; want %#x, %#x", c.length, h0, h1, c.plain, c.seeded)
		}
	}
}
