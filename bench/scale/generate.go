package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"github.com/zeebo/xxh3"
)

// generated appends entry i of an endless list that is the same each time: half
// domains of two labels, a quarter of three, a quarter addresses. The number is
// part of the name, so that no two are equal.
//
// The lengths are those of real lists: 19 bytes on average for domains, 33 for
// addresses.
func generated(dst []byte, seed, i uint64) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], seed)
	binary.LittleEndian.PutUint64(b[8:], i)
	r := xxh3.Hash(b[:])
	if r&3 == 3 {
		dst = append(dst, givenNames[r>>2%uint64(len(givenNames))]...)
		dst = append(dst, '.')
		dst = appendLetters(dst, r>>10, 7)
		dst = append(dst, '@')
	}
	if r&3 == 2 {
		dst = append(dst, hosts[r>>2%uint64(len(hosts))]...)
		dst = append(dst, '.')
	}
	dst = appendLetters(dst, r>>16, 2+int(r>>5&7))
	dst = append(dst, '-')
	dst = strconv.AppendUint(dst, i, 36)
	dst = append(dst, '.')
	return append(dst, tops[r>>40%uint64(len(tops))]...)
}

func appendLetters(dst []byte, r uint64, n int) []byte {
	for range n {
		dst = append(dst, byte('a'+r%26))
		r /= 26
	}
	return dst
}

var (
	givenNames = []string{"news", "office", "sales", "contact", "offers", "billing", "noreply", "service"}
	hosts      = []string{"mail", "mx", "news", "shop", "send", "mta", "em", "bounce"}
	tops       = []string{"com", "net", "org", "info", "shop", "top", "de", "online", "xyz", "biz"}
)

// writeList writes a list of n generated entries.
func writeList(path string, seed, n uint64, comment string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err2 := f.Close(); err == nil {
			err = err2
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := fmt.Fprintf(w, "# %d generated entries\n", n); err != nil {
		return err
	}
	var line []byte
	for i := range n {
		line = generated(line[:0], seed, i)
		line = append(line, comment...)
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return w.Flush()
}
