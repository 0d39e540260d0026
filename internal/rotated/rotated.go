// Package rotated reads log files, and what programs such as logrotate moved away and packed.
package rotated

import (
	"compress/bzip2"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Of reports whether a file name is that of a log, or of what was rotated away of it:
// gate.log.1, gate.log-20261121.gz and the like.
func Of(log, name string) bool {
	rest, ok := strings.CutPrefix(name, log)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '-')
}

// Packed reports whether a log was packed, as its name says.
func Packed(name string) bool {
	switch path.Ext(name) {
	case ".gz", ".zst", ".bz2", ".xz", ".lz4", ".Z", ".lzma":
		return true
	}
	return false
}

// Unpack returns the content of a log that may have been packed when it was rotated, as its
// name says.
func Unpack(name string, r io.Reader) (io.ReadCloser, error) {
	switch path.Ext(name) {
	case ".gz":
		return gzip.NewReader(r)
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case ".bz2":
		return io.NopCloser(bzip2.NewReader(r)), nil
	case ".xz", ".lz4", ".Z", ".lzma":
		return nil, errors.New("packed in a way that cannot be read here: unpack it")
	}
	return io.NopCloser(r), nil
}
