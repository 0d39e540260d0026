package hashfamily

import "golang.org/x/sys/cpu"

//go:generate go -C ../tools/avo run . -out ../../hashfamily/kernel_amd64.s

// hashAVX2 hashes the eight keys whose places in keys stand from order on, and
// stores their hashes at the same places of dst. The shortest has least bytes, the
// longest most, which is at most longest. A place may stand twice.
//
//go:noescape
func hashAVX2(dst *[11]uint32, keys *[]byte, order *uint16, least, most int)

// hashAVX512 is hashAVX2 for sixteen keys.
//
//go:noescape
func hashAVX512(dst *[11]uint32, keys *[]byte, order *uint16, least, most int)

const (
	// longest is the length of the longest keys that are hashed side by side. It
	// bounds the time that a kernel runs, in which a goroutine cannot be stopped.
	longest = 1024

	// sortRoom is how many keys are sorted by length at once.
	sortRoom = 256

	// few is the number of keys from which on sorting them and a kernel are worth
	// it (BenchmarkFrom).
	few = 4

	maxLanes = 16
)

// paths lists the ways that this processor has, the fastest last.
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

// fastest is the way that SumBatch takes.
var fastest = func() path {
	list := paths()
	return list[len(list)-1]
}()

// sumBatch is SumBatch by the way p.
func sumBatch(p path, dst [][11]uint32, keys [][]byte) {
	if p == portable || len(keys) < few {
		sumEach(dst, keys)
		return
	}
	var order [sortRoom + maxLanes]uint16
	for len(keys) > 0 {
		n := min(len(keys), sortRoom)
		sumSorted(p, dst[:n], keys[:n], &order)
		dst, keys = dst[n:], keys[n:]
	}
}

// sumSorted hashes up to sortRoom keys, at least one, those of about the same
// length side by side: a lane whose key has ended waits for the longest. Order is
// room.
func sumSorted(p path, dst [][11]uint32, keys [][]byte, order *[sortRoom + maxLanes]uint16) {
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

// byLength fills order with the places of the keys that are not longer than
// longest, the shortest first, and returns how many there are. Behind them the
// last is repeated for every lane, so that a kernel always has enough.
func byLength(order *[sortRoom + maxLanes]uint16, keys [][]byte) int {
	var next [longest + 1]uint16 // by length: how many keys, then where the next goes
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
			order[next[len(key)]%sortRoom] = uint16(i)
			next[len(key)]++
		}
	}
	for i := range maxLanes {
		order[int(n)+i] = order[max(n, 1)-1]
	}
	return int(n)
}
