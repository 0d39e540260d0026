package hashfamily

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// sumInterleaved is a way that was tried and left: one hash of four keys at a
// time, in plain Go, where SumBatch without help from the processor takes all
// hashes of one key at a time. BenchmarkEleven has both. It hashes four keys of
// one length.
func sumInterleaved(dst *[4][11]uint32, k0, k1, k2, k3 []byte) {
	k1, k2, k3 = k1[:len(k0)], k2[:len(k0)], k3[:len(k0)]
	put := func(hash int, h0, h1, h2, h3 uint32) {
		dst[0][hash], dst[1][hash], dst[2][hash], dst[3][hash] = h0, h1, h2, h3
	}
	var a, b, c, d uint32 // the hash of each key

	a, b, c, d = 0, 0, 0, 0
	multiplier := uint32(63689)
	for i := range k0 {
		a = a*multiplier + uint32(k0[i])
		b = b*multiplier + uint32(k1[i])
		c = c*multiplier + uint32(k2[i])
		d = d*multiplier + uint32(k3[i])
		multiplier *= 378551
	}
	put(0, a, b, c, d)

	a, b, c, d = 1315423911, 1315423911, 1315423911, 1315423911
	for i := range k0 {
		a = nextJS(a, uint32(k0[i]))
		b = nextJS(b, uint32(k1[i]))
		c = nextJS(c, uint32(k2[i]))
		d = nextJS(d, uint32(k3[i]))
	}
	put(1, a, b, c, d)

	a, b, c, d = 0, 0, 0, 0
	for i := range k0 {
		a = nextPJW(a, uint32(k0[i]))
		b = nextPJW(b, uint32(k1[i]))
		c = nextPJW(c, uint32(k2[i]))
		d = nextPJW(d, uint32(k3[i]))
	}
	a, b, c, d = a&(1<<28-1), b&(1<<28-1), c&(1<<28-1), d&(1<<28-1)
	put(2, a, b, c, d)
	put(3, a, b, c, d)

	a, b, c, d = 0, 0, 0, 0
	for i := range k0 {
		a = a*131 + uint32(k0[i])
		b = b*131 + uint32(k1[i])
		c = c*131 + uint32(k2[i])
		d = d*131 + uint32(k3[i])
	}
	put(4, a, b, c, d)

	a, b, c, d = 0, 0, 0, 0
	for i := range k0 {
		a = a*65599 + uint32(k0[i])
		b = b*65599 + uint32(k1[i])
		c = c*65599 + uint32(k2[i])
		d = d*65599 + uint32(k3[i])
	}
	put(5, a, b, c, d)

	a, b, c, d = 5381, 5381, 5381, 5381
	for i := range k0 {
		a = a*33 + uint32(k0[i])
		b = b*33 + uint32(k1[i])
		c = c*33 + uint32(k2[i])
		d = d*33 + uint32(k3[i])
	}
	put(6, a, b, c, d)

	a, b, c, d = uint32(len(k0)), uint32(len(k0)), uint32(len(k0)), uint32(len(k0))
	for i := range k0 {
		a = bits.RotateLeft32(a, 5) ^ uint32(k0[i])
		b = bits.RotateLeft32(b, 5) ^ uint32(k1[i])
		c = bits.RotateLeft32(c, 5) ^ uint32(k2[i])
		d = bits.RotateLeft32(d, 5) ^ uint32(k3[i])
	}
	put(7, a, b, c, d)

	a, b, c, d = 0, 0, 0, 0
	for i := range k0 {
		a = a<<7 ^ uint32(k0[i])
		b = b<<7 ^ uint32(k1[i])
		c = c<<7 ^ uint32(k2[i])
		d = d<<7 ^ uint32(k3[i])
	}
	put(8, a, b, c, d)

	a, b, c, d = 0, 0, 0, 0
	for i := range k0 {
		a = a*0x811C9DC5 ^ uint32(k0[i])
		b = b*0x811C9DC5 ^ uint32(k1[i])
		c = c*0x811C9DC5 ^ uint32(k2[i])
		d = d*0x811C9DC5 ^ uint32(k3[i])
	}
	put(9, a, b, c, d)

	a, b, c, d = 0xAAAAAAAA, 0xAAAAAAAA, 0xAAAAAAAA, 0xAAAAAAAA
	i := 1
	for ; i < len(k0); i += 2 {
		a = nextEvenAP(a, uint32(k0[i-1]))
		a ^= ^(a<<11 + (uint32(k0[i]) ^ a>>5))
		b = nextEvenAP(b, uint32(k1[i-1]))
		b ^= ^(b<<11 + (uint32(k1[i]) ^ b>>5))
		c = nextEvenAP(c, uint32(k2[i-1]))
		c ^= ^(c<<11 + (uint32(k2[i]) ^ c>>5))
		d = nextEvenAP(d, uint32(k3[i-1]))
		d ^= ^(d<<11 + (uint32(k3[i]) ^ d>>5))
	}
	if len(k0)%2 == 1 {
		a = nextEvenAP(a, uint32(k0[i-1]))
		b = nextEvenAP(b, uint32(k1[i-1]))
		c = nextEvenAP(c, uint32(k2[i-1]))
		d = nextEvenAP(d, uint32(k3[i-1]))
	}
	put(10, a, b, c, d)
}

func TestSumInterleaved(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for n := range 70 {
		keys := [4][]byte{randomKey(r, n), randomKey(r, n), randomKey(r, n), randomKey(r, n)}
		var got [4][11]uint32
		sumInterleaved(&got, keys[0], keys[1], keys[2], keys[3])
		for i, key := range keys {
			if want := plainSums(key); got[i] != want {
				t.Fatalf("%q: %v, want %v", key, got[i], want)
			}
		}
	}
}
