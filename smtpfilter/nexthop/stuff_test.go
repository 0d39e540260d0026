package nexthop

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"testing"
)

// stuffPieces stuffs text in pieces that end at cuts.
func stuffPieces(t testing.TB, body []byte, cut func(left int) int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := bufio.NewWriterSize(&out, 16)
	var s stuffer
	for left := body; len(left) > 0; {
		n := cut(len(left))
		if err := s.write(w, left[:n]); err != nil {
			t.Fatal(err)
		}
		left = left[n:]
	}
	if err := s.close(w); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	return out.Bytes()
}

// stuffWhole is the plain twin.
func stuffWhole(body []byte) []byte {
	if len(body) > 0 && !bytes.HasSuffix(body, []byte("\r\n")) {
		body = append(bytes.Clone(body), "\r\n"...)
	}
	return stuff(body)
}

// TestStuff tries all bodies of up to 7 bytes that matter, whole and bytewise,
// and cut once at each place.
func TestStuff(t *testing.T) {
	const alphabet = "\r\n.a"
	var try func(body []byte)
	try = func(body []byte) {
		want := stuffWhole(body)
		for pos := range len(body) + 1 {
			cut := func(left int) int {
				switch {
				case pos == 0:
					return 1
				case left == len(body):
					return pos
				}
				return left
			}
			if got := stuffPieces(t, body, cut); !bytes.Equal(got, want) {
				t.Fatalf("%q cut at %d: %q, not %q", body, pos, got, want)
			}
		}
		if len(body) == 7 {
			return
		}
		for i := range alphabet {
			try(append(body[:len(body):len(body)], alphabet[i]))
		}
	}
	try(nil)
}

func TestStuffRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		body := randomBody(r, r.IntN(5000))
		body = body[:r.IntN(len(body)+1)]
		most := 1 + r.IntN(200)
		if got := stuffPieces(t, body, func(left int) int { return min(left, 1+r.IntN(most)) }); !bytes.Equal(got, stuffWhole(body)) {
			t.Fatalf("%q became %q", body, got)
		}
	}
}

// FuzzStuff compares with the plain twin, and with what a server makes of it: a
// message that goes on, whole, up to the final dot.
func FuzzStuff(f *testing.F) {
	f.Add([]byte(".\r\n..\r\n\r\n.\r\nx"), uint8(1))
	f.Add([]byte("a\r\r\n.\n.\r.\r\n"), uint8(2))
	f.Add([]byte(""), uint8(0))
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		got := stuffPieces(t, body, func(left int) int { return min(left, 1+int(size)) })
		if want := stuffWhole(body); !bytes.Equal(got, want) {
			t.Fatalf("%q became %q, not %q", body, got, want)
		}
		if end := bytes.Index(append([]byte("\r\n"), got...), []byte("\r\n.\r\n")); end >= 0 {
			t.Fatalf("%q became %q, which ends at %d", body, got, end)
		}
	})
}
