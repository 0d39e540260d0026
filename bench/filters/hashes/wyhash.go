package main

import (
	"encoding/binary"
	"math/bits"
)

// wySecret is wyhash's default secret.
var wySecret = [4]uint64{0x2d358dccaa6c78a5, 0x8bb84b93962eacc9, 0x4b33a62ed433d4a3, 0x4d5a2da51de1aa47}

// wyMix multiplies to 128 bits and folds them.
func wyMix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// wyhash is Wang Yi's wyhash, final version 4.2 (public domain,
// github.com/wangyi-fudan/wyhash), which no well-kept Go library has.
func wyhash(key []byte, seed uint64) uint64 {
	word := binary.LittleEndian.Uint64
	half := func(p []byte) uint64 { return uint64(binary.LittleEndian.Uint32(p)) }
	n := len(key)
	seed ^= wyMix(seed^wySecret[0], wySecret[1])
	var a, b uint64
	switch {
	case n > 16:
		p := key
		if len(p) >= 48 {
			one, two := seed, seed
			for ; len(p) >= 48; p = p[48:] {
				seed = wyMix(word(p)^wySecret[1], word(p[8:])^seed)
				one = wyMix(word(p[16:])^wySecret[2], word(p[24:])^one)
				two = wyMix(word(p[32:])^wySecret[3], word(p[40:])^two)
			}
			seed ^= one ^ two
		}
		for ; len(p) > 16; p = p[16:] {
			seed = wyMix(word(p)^wySecret[1], word(p[8:])^seed)
		}
		a, b = word(key[n-16:]), word(key[n-8:])
	case n >= 4:
		skip := n >> 3 << 2
		a, b = half(key)<<32|half(key[skip:]), half(key[n-4:])<<32|half(key[n-4-skip:])
	case n > 0:
		a = uint64(key[0])<<16 | uint64(key[n>>1])<<8 | uint64(key[n-1])
	}
	high, low := bits.Mul64(a^wySecret[1], b^seed)
	return wyMix(low^wySecret[0]^uint64(n), high^wySecret[1])
}
