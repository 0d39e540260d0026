package listfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstded(t testing.TB, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

// TestPacked: each sample, packed, reads as it does unpacked, auto or not.
func TestPacked(t *testing.T) {
	for file, format := range samples(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, pack := range map[string]func(testing.TB, string) string{"gzip": gzipped, "zstd": zstded} {
			for _, f := range []Format{format, Auto} {
				o := Options{Format: f, Now: sampleNow}
				want := readOnce(bytes.NewReader(text), o)
				want.result.Packed = name
				got := readOnce(strings.NewReader(pack(t, string(text))), o)
				if outcome(got) != outcome(want) || got.result.Packed != name {
					t.Errorf("%s, %s as %s:\n%s\nwant\n%s", file, name, f, outcome(got), outcome(want))
				}
				sameInParallel(t, pack(t, string(text)), o, got)
			}
		}
	}
}

func TestPackedOddly(t *testing.T) {
	const text = "example.com\nexample.net\n"
	long := strings.Repeat("host.example.com\n", 100_000)
	skippable := "\x50\x2a\x4d\x18\x04\x00\x00\x00xxxx"
	random := func(s string) string { // bytes that are no frame
		return s[:len(s)-20] + strings.Repeat("\xff", 20)
	}
	for _, c := range []struct {
		name, text string
		want       error
		entries    int
	}{
		{"two gzip members", gzipped(t, text) + gzipped(t, text), nil, 4},
		{"a member ends in a line", gzipped(t, "exam") + gzipped(t, "ple.com\n"), nil, 1},
		{"two zstd frames", zstded(t, text) + zstded(t, text), nil, 4},
		{"a skippable zstd frame", skippable + zstded(t, text), nil, 2},
		{"gzip of nothing", gzipped(t, ""), nil, 0},
		{"zstd of nothing", zstded(t, ""), nil, 0},
		{"gzip with a byte order mark inside", gzipped(t, bom+text), nil, 2},
		{"gzip, cut", gzipped(t, long)[:1000], io.ErrUnexpectedEOF, 0},
		{"gzip, cut in the header", gzipped(t, long)[:5], io.ErrUnexpectedEOF, 0},
		{"gzip, cut before the checksum", gzipped(t, text)[:len(gzipped(t, text))-8], io.ErrUnexpectedEOF, 0},
		{"zstd, cut", zstded(t, long)[:len(zstded(t, long))-10], io.ErrUnexpectedEOF, 0},
		{"gzip, damaged", random(gzipped(t, long)), ErrPacked, 0},
		{"zstd, damaged", random(zstded(t, long)), ErrPacked, 0},
		{"gzip, then something else", gzipped(t, text) + "example.org\n", ErrPacked, 0},
		{"gzip in gzip", gzipped(t, gzipped(t, text)), ErrPacked, 0},
		{"zip in zstd", zstded(t, "PK\x03\x04"), ErrPacked, 0},
		{"zip", "PK\x03\x04\x14\x00", ErrPacked, 0},
		{"xz", "\xfd7zXZ\x00\x00", ErrPacked, 0},
		{"bzip2", "BZh91AY&SY", ErrPacked, 0},
		{"UTF-16 in gzip", gzipped(t, "\xff\xfee\x00"), ErrUTF16, 0},
		{"NUL in gzip", gzipped(t, "a\x00"), ErrBinary, 0},
		{"a bomb in gzip", gzipped(t, strings.Repeat("x", 100<<20)), ErrTooBig, 0},
		{"a bomb in zstd", zstded(t, strings.Repeat("x", 100<<20)), ErrTooBig, 0},
		{"a bomb of lines", gzipped(t, strings.Repeat("\n", 100<<20)), ErrTooBig, 0},
	} {
		o := Options{MaxBytes: 10 << 20}
		got := readOnce(strings.NewReader(c.text), o)
		if !errors.Is(got.err, c.want) || c.want == nil && (len(got.entries) != c.entries || len(got.problems) > 0) {
			t.Errorf("%s: %d entries, %v, error %v, want %v", c.name, len(got.entries), got.problems, got.err, c.want)
		}
		if parallel := readParallel(strings.NewReader(c.text), o, 2); !errors.Is(parallel.err, c.want) {
			t.Errorf("%s, in parallel: %v", c.name, parallel.err)
		}
	}
}

func TestMaxBytes(t *testing.T) {
	const text = "example.com\nexample.net\n"
	for n := range int64(len(text) + 2) {
		got := readOnce(strings.NewReader(text), Options{MaxBytes: n})
		if tooBig := n > 0 && n < int64(len(text)); errors.Is(got.err, ErrTooBig) != tooBig {
			t.Errorf("at most %d of %d bytes: %v", n, len(text), got.err)
		}
	}
	got := readOnce(strings.NewReader(text), Options{MaxBytes: 5})
	if want := "more than 5 bytes"; got.err == nil || !strings.Contains(got.err.Error(), want) {
		t.Errorf("%v, want %s", got.err, want)
	}
}

// TestErrorsStay: what the reader says once is not forgotten by looking ahead.
func TestErrorsStay(t *testing.T) {
	broken := errors.New("disk on fire")
	for n := range 20 {
		got := readOnce(&once{text: strings.Repeat("a.example\n", 3)[:n], err: broken}, Options{})
		if !errors.Is(got.err, broken) {
			t.Errorf("after %d bytes: %v", n, got.err)
		}
	}
}

// once fails once, and is at its end afterwards.
type once struct {
	text string
	err  error
}

func (o *once) Read(p []byte) (int, error) {
	if n := copy(p, o.text); n > 0 {
		o.text = o.text[n:]
		return n, nil
	}
	err := o.err
	o.err = io.EOF
	return 0, err
}
