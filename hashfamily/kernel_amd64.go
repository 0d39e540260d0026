package hashfamily

import "golang.org/x/sys/cpu"

//go:generate go -C ../tools/avo run . -out ../../hashfamily/kernel_amd64.s

// hashAVX2 hashes eight keys. Order holds their indices in keys and dst. The
// shortest has least bytes, the longest most, at most longest. An index may be
// repeated.
//
//go:noescape
func hashAVX2(dst *[11]uint32, keys *[]byte, order *uint16, least, most int)

// hashAVX512 hashes sixteen keys, as hashAVX2 does eight.
//
//go:noescape
func hashAVX512(dst *[11]uint32, keys *[]byte, order *uint16, least, most int)

const (
	// longest is the greatest length of keys that are hashed side by side. It bounds
	// the time that a kernel runs, since a goroutine cannot be stopped meanwhile.
	longest = 1024

	// sortSize is the number of keys that are sorted by length at once.
	sortSize = 256

	// few is the number of keys from which on sorting and a kernel are faster
	// (BenchmarkFrom).
	few = 4

	maxLanes = 16
)

// paths lists the implementations that this processor supports, the fastest last.
func paths() []path {
	list := []path{portable}
	if cpu.X86.HasAVX2 {
		list = append(list, avx2)
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
			list = append(list, avx512)
		}
	}
	return list
}

// fastest is the implementation that SumBatch uses.
var fastest = func() path {
	list := paths()
	return list[len(list)-1]
}()

// sumBatch implements SumBatch with p.
func sumBatch(p path, dst [][11]uint32, keys [][]byte) {
	if p == portable || len(keys) < few {
		sumEach(dst, keys)
		return
	}
	var order [sortSize + maxLanes]uint16
	for len(keys) > 0 {
		n := min(len(keys), sortSize)
		sumSorted(p, dst[:n], keys[:n], &order)
		dst, keys = dst[n:], keys[n:]
	}
}

// sumSorted hashes up to sortSize keys, at least one. Keys of about the same length
// are hashed side by side, since the lane of a short key waits for the longest. It
// uses order as a buffer.
func sumSorted(p path, dst [][11]uint32, keys [][]byte, order *[sortSize + maxLanes]uint16) {
	lanes := 8
	if p == avx512 {
		lanes = 16
	}
	n := byLength(order, keys)
	for i := 0; i < n; i += lanes {
		least, most := len(keys[order[i]]), len(keys[order[min(i+lanes, n)-1]])
		if p == avx512 {
			hashAVX512(&dst[0], &keys[0], &order[i], least, most)
		} else {
			hashAVX2(&dst[0], &keys[0], &order[i], least, most)
		}
	}
	if n < len(keys) {
		for i, key := range keys {
			if len(key) > longest {
				dst[i] = Sum11(key)
			}
		}
	}
}

// byLength fills order with the indices of the keys that are at most longest bytes,
// the shortest first, and returns their number. After them it repeats the last for
// every lane, so that a kernel always has enough keys.
func byLength(order *[sortSize + maxLanes]uint16, keys [][]byte) int {
	var next [longest + 1]uint16 // by length: the number of keys, then the place of the next
	n, most := uint16(0), 0
	for _, key := range keys {
		if len(key) <= longest {
			next[len(key)]++
			most = max(most, len(key))
		}
	}
	for l, count := range next[:most+1] {
		next[l] = n
		n += count
	}
	for i, key := range keys {
		if len(key) <= longest {
			order[next[len(key)]%sortSize] = uint16(i)
			next[len(key)]++
		}
	}
	for i := range maxLanes {
		order[int(n)+i] = order[max(n, 1)-1]
	}
	return int(n)
}
