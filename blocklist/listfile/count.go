package listfile

import (
	"bufio"
	"errors"
	"io"
)

// CountLines returns the number of lines of a file, comments and empty lines
// included, but at most most. It unpacks a file as [Reader] does.
func CountLines(r io.Reader, most int) (n int, err error) {
	p, err := unpack(r, Options{})
	if err != nil {
		return 0, err
	}
	defer p.close()
	for n < most {
		text, err := p.ReadSlice('\n')
		switch {
		case err == nil:
			n++
		case errors.Is(err, bufio.ErrBufferFull): // goes on
		case errors.Is(err, io.EOF) && len(text) > 0:
			return n + 1, nil
		case errors.Is(err, io.EOF):
			return n, nil
		default:
			return n, err
		}
	}
	return n, nil
}
