package segment

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file with its current size. An empty file has no mapping.
func mapFile(f *os.File) (data []byte, unmap func([]byte), err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return nil, nil, err
	}
	if info.Size() > math.MaxInt {
		return nil, nil, unix.EFBIG
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func(data []byte) { unix.Munmap(data) }, nil
}

// giveBack releases the memory of a part of the blocks. It stays in the system's cache
// and returns when it is read.
func (s *Segment) giveBack(from, to uint64) {
	if s.unmap == nil {
		return // not mapped: this is the only copy
	}
	page := uint64(os.Getpagesize())
	from = (headerSize + from + page - 1) / page * page
	if to = (headerSize + to) / page * page; from < to {
		// An error costs only memory.
		_ = unix.Madvise(s.data[from:to], unix.MADV_DONTNEED)
	}
}
