package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// gzipped is a text as gzip packs it.
func gzipped(tb testing.TB, text string) string {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// A file that had entries and holds nothing any more is held, packed or not. One
// with a comment is empty on purpose.
func TestEmptied(t *testing.T) {
	packer, err := zstd.NewWriter(nil)
	must(t, err)
	packed := func(text string) string { return string(packer.EncodeAll([]byte(text), nil)) }
	for _, tt := range []struct {
		name, full, empty string
		want              error
	}{
		{"plain", "one.example\n", "", ErrEmptied},
		{"gzip", gzipped(t, "one.example\n"), gzipped(t, ""), ErrEmptied},
		{"zstd", packed("one.example\n"), packed(""), ErrEmptied},
		{"plain on purpose", "one.example\n", "#\n", nil},
		{"gzip on purpose", gzipped(t, "one.example\n"), gzipped(t, "#\n"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, inDir(t, "list"), tt.full)
			s := openStill(t, fast(blockList("list", path)))
			write(t, path, tt.empty)
			set, err := rescan(t, s)
			if !errors.Is(err, tt.want) || (set.Stats().Entries == 1) != (tt.want != nil) {
				t.Errorf("%v, %d entries", err, set.Stats().Entries)
			}
		})
	}
}
