package listfile

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is how far back a zstd file may refer, as much as zstd --long writes.
// It bounds the memory that a file can demand.
const maxWindow = 128 << 20

// packers are the known ways to pack a file, by how such a file starts. Those
// without a name are refused.
var packers = []struct{ magic, name, refused string }{
	{magic: "\x1f\x8b", name: "gzip"},
	{magic: "\x28\xb5\x2f\xfd", name: "zstd"},
	{magic: "PK\x03\x04", refused: "zip"},
	{magic: "\xfd7zXZ\x00", refused: "xz"},
	{magic: "7z\xbc\xaf\x27\x1c", refused: "7-Zip"},
	{magic: "BZh91AY&SY", refused: "bzip2"},
	{magic: "\x04\x22\x4d\x18", refused: "lz4"},
}

// packed is the unpacked content of a file.
type packed struct {
	*bufio.Reader
	name  string // the packer; "" if it was not packed
	close func()
}

// unpack unpacks a file if it is packed. At most o.MaxBytes can be read from the
// result.
func unpack(r io.Reader, o Options) (*packed, error) {
	in := bufio.NewReaderSize(&limited{from: r, left: math.MaxInt64 - 1}, readBuffer)
	p := &packed{close: func() {}}
	name, err := Packer(in)
	if err != nil {
		return nil, err
	}
	var content io.Reader = in
	switch name {
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, unpackError(name, err)
		}
		content = z
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, unpackError(name, err)
		}
		content, p.close = z, z.Close
	}
	if name != "" {
		content = &unpacking{content, name}
	}
	limit := o.MaxBytes
	if limit <= 0 {
		limit = math.MaxInt64 - 1
	}
	p.name = name
	p.Reader = bufio.NewReaderSize(&limited{from: content, left: limit, limit: limit}, readBuffer)
	if name != "" {
		twice, err := Packer(p.Reader)
		if twice != "" {
			err = fmt.Errorf("%w: it is packed twice; unpack it once", ErrPacked)
		}
		if err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// Unpack returns the content of a file, and reports whether the file is packed. Reading
// more than maxBytes is an error; 0 means no limit.
func Unpack(r io.Reader, maxBytes int64) (content io.ReadCloser, isPacked bool, err error) {
	p, err := unpack(r, Options{MaxBytes: maxBytes})
	if err != nil {
		return nil, false, err
	}
	return unpackedFile{p}, p.name != "", nil
}

// unpackedFile is the content of a file that may be packed.
type unpackedFile struct{ *packed }

func (u unpackedFile) Close() error {
	u.close()
	return nil
}

// Packer returns the packer of a file; "" if it is not packed.
func Packer(in *bufio.Reader) (string, error) {
	start, _ := in.Peek(16) // reading returns an error again
	for _, p := range packers {
		if !strings.HasPrefix(string(start), p.magic) {
			continue
		}
		if p.refused != "" {
			return "", fmt.Errorf("%w: it is a %s file; unpack it, or pack it with gzip or zstd", ErrPacked, p.refused)
		}
		return p.name, nil
	}
	if len(start) >= 4 && start[0]&0xF0 == 0x50 && string(start[1:4]) == "\x2A\x4D\x18" {
		return "zstd", nil // begins with a skippable frame (RFC 8878, section 3.1.2), as pzstd writes it
	}
	return "", nil
}

// unpacking wraps the errors of a packer.
type unpacking struct {
	io.Reader
	name string
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = unpackError(u.name, err)
	}
	return n, err
}

func unpackError(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("%w: the %s file is cut short: %w", ErrPacked, name, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: unpacking %s: %w", ErrPacked, name, err)
}

// limited fails after limit bytes, and repeats its first error: bufio.Reader.Peek
// hides one.
type limited struct {
	from        io.Reader
	left, limit int64
	err         error
}

func (l *limited) Read(p []byte) (n int, err error) {
	if l.err != nil {
		return 0, l.err
	}
	// Reads one byte more, to see whether there is more.
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, l.err = l.from.Read(p)
	if int64(n) > l.left {
		n, l.err = int(l.left), fmt.Errorf("%w: more than %d bytes", ErrTooBig, l.limit)
	}
	l.left -= int64(n)
	return n, l.err
}

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
