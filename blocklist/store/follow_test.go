package store

import (
	"io"
	"testing"
)

// countingReader counts what is read through it.
type countingReader struct {
	io.Reader
	n *int
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	*r.n += n
	return n, err
}

// What a store reads of its lists can be followed, byte for byte. A start that
// reads nothing has nothing to follow.
func TestFollow(t *testing.T) {
	long := manyLines(80_000, 0) // which several goroutines parse
	path := write(t, inDir(t, "spam.txt"), long)
	c := stateful(t, blockList("spam", path))
	read := 0
	c.Follow = func(file string, from io.Reader) io.Reader {
		if file != path {
			t.Errorf("reads %s", file)
		}
		return countingReader{from, &read}
	}
	must(t, openStill(t, c).Close())
	if read != len(long) {
		t.Errorf("%d bytes were read, want %d", read, len(long))
	}
	settled(t, c, path)
	read = 0
	must(t, openStill(t, c).Close())
	if read != 0 {
		t.Errorf("%d bytes of an unchanged list were read", read)
	}
}
