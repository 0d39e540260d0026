package wire

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// segments is a client that sends its bytes in given pieces and then closes.
type segments struct {
	net.Conn
	pieces  [][]byte
	written bytes.Buffer
}

func (s *segments) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; len(s.pieces[0]) == 0 {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}
func (s *segments) LocalAddr() net.Addr              { return nil }
func (s *segments) RemoteAddr() net.Addr             { return nil }
func (s *segments) Write(p []byte) (int, error)      { return s.written.Write(p) }
func (s *segments) Close() error                     { return nil }
func (s *segments) SetReadDeadline(time.Time) error  { return nil }
func (s *segments) SetWriteDeadline(time.Time) error { return nil }

func bytewise(s string) [][]byte {
	pieces := make([][]byte, len(s))
	for i := range pieces {
		pieces[i] = []byte{s[i]}
	}
	return pieces
}

// inBody is a connection on which 354 was just sent.
func inBody(pieces [][]byte, limit int64) (*Conn, *Body) {
	cfg := Config{Rules: Rules{MaxMessageBytes: limit}}.withDefaults()
	c := newConn(&segments{pieces: pieces}, &cfg, nil)
	c.body = newBody(c)
	return c, c.body
}

// readBody reads a body to its end.
func readBody(b *Body) (string, error) {
	var got []byte
	for {
		piece, err := b.Next()
		if err != nil {
			return string(got), err
		}
		got = append(got, piece...)
	}
}

// verdict is the result of a client's bytes after 354.
type verdict struct {
	message   string // all up to the final dot
	rest      string // what is left for commands
	ended     bool
	nul, bare bool // what the message holds that it must not
}

// reference decides it with an automaton that looks at one byte after another.
// Its states are what may be a beginning of CRLF.CRLF.
func reference(s string) (v verdict) {
	const (
		inLine = iota
		cr
		lineStart // behind CRLF, or at the beginning
		dot
		dotCR
	)
	state := lineStart
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '\n' && state == dotCR:
			v.message, v.rest, v.ended = s[:i-2], s[i+1:], true
			return v
		case c == '\n' && state == cr:
			state = lineStart
			continue
		case state == cr || state == dotCR, c == '\n':
			v.bare = true
		}
		v.nul = v.nul || c == 0
		switch {
		case c == '\r' && state == dot:
			state = dotCR
		case c == '\r':
			state = cr
		case c == '.' && state == lineStart:
			state = dot
		default:
			state = inLine
		}
	}
	return v
}

// checkBody compares a Body with the reference.
func checkBody(t *testing.T, input string, pieces [][]byte) {
	t.Helper()
	want := reference(input)
	c, b := inBody(pieces, 0)
	got, err := readBody(b)
	discardErr := b.Discard()
	rest := left(c)
	c.in.release()
	if !want.ended {
		if err == io.EOF || discardErr == nil || !c.last {
			t.Errorf("%q: taken as whole (%q, %v, %v), but has no end", input, got, err, discardErr)
		}
		return
	}
	switch {
	case !want.bare && !want.nul:
		if err != io.EOF || got != want.message || discardErr != nil || c.last {
			t.Errorf("%q: got %q, %v, %v; want %q", input, got, err, discardErr, want.message)
		}
	case err == ErrNUL && want.nul, err == ErrBareNewline && want.bare: // which is named depends on the packets
		if clean := reference(got + "\r\n.\r\n"); discardErr != nil || !c.last || clean.nul || clean.bare ||
			!strings.HasPrefix(want.message, got) {
			t.Errorf("%q: got %q, %v, %v; want a clean part and the end of the connection", input, got, err, discardErr)
		}
	default:
		t.Errorf("%q: got %q, %v; want %+v", input, got, err, want)
	}
	if rest != want.rest {
		t.Errorf("%q: the body ends before %q, want before %q", input, rest, want.rest)
	}
}

// everyString calls try with every string of up to longest of the bytes that
// matter, and returns how many there are.
func everyString(t *testing.T, longest int, try func(s string)) (count int) {
	const alphabet = "\r\n.\x00a"
	var grow func(s string)
	grow = func(s string) {
		try(s)
		if count++; t.Failed() || len(s) == longest {
			return
		}
		for i := range len(alphabet) {
			grow(s + alphabet[i:i+1])
		}
	}
	grow("")
	return count
}

// TestBodyExhaustively feeds every string of up to 7 bytes (97,655 and the empty
// one) alone, and between a first line and a real end, whole and byte by byte.
func TestBodyExhaustively(t *testing.T) {
	longest := 7
	if testing.Short() {
		longest = 5
	}
	count := everyString(t, longest, func(s string) {
		checkBody(t, s, [][]byte{[]byte(s)})
		input := "x\r\n" + s + "\r\n.\r\nQUIT\r\n"
		checkBody(t, input, [][]byte{[]byte(input)})
		checkBody(t, input, bytewise(input))
	})
	t.Logf("%d strings", count)
}

// TestBodyRandomly feeds bodies with long lines and many dots in packets of
// random sizes.
func TestBodyRandomly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var msg strings.Builder
		for range rng.IntN(20) {
			length := rng.IntN(100)
			if rng.IntN(20) == 0 {
				length = rng.IntN(3 * largeBuffer)
			}
			for range length {
				msg.WriteByte("..abcdefgh\xff\x80\t "[rng.IntN(14)])
			}
			msg.WriteString("\r\n")
		}
		input := msg.String() + ".\r\nMAIL FROM:<next@example.com>\r\n"
		if rng.IntN(10) == 0 && msg.Len() > 0 {
			pos := rng.IntN(msg.Len())
			input = input[:pos] + string("\r\n\x00"[rng.IntN(3)]) + input[pos:]
		}
		var pieces [][]byte
		for left := []byte(input); len(left) > 0; {
			n := min(len(left), 1+rng.IntN(2*largeBuffer))
			pieces = append(pieces, left[:n])
			left = left[n:]
		}
		checkBody(t, input, pieces)
	}
}

// TestBodySize takes a message of exactly the limit and refuses one byte more;
// dot-stuffing does not count.
func TestBodySize(t *testing.T) {
	const message = "Subject: x\r\n\r\n..dot\r\n"
	size := int64(len(message) - 1)
	for _, tt := range []struct {
		limit int64
		want  error
	}{{size, io.EOF}, {size - 1, ErrTooLarge}} {
		for _, pieces := range [][][]byte{{[]byte(message + ".\r\n")}, bytewise(message + ".\r\n")} {
			_, b := inBody(pieces, tt.limit)
			if _, err := readBody(b); err != tt.want {
				t.Errorf("limit %d: %v, want %v", tt.limit, err, tt.want)
			}
		}
	}
}

func TestHeader(t *testing.T) {
	for _, tt := range []struct{ message, header string }{
		{"A: b\r\n\r\nbody\r\n", "A: b\r\n\r\n"},
		{"A: b\r\nC: d\r\n\r\n\r\n\r\n", "A: b\r\nC: d\r\n\r\n"},
		{"\r\nbody\r\n", "\r\n"},
		{"A: b\r\n", "A: b\r\n"},
		{"", ""},
	} {
		for _, pieces := range [][][]byte{{[]byte(tt.message + ".\r\n")}, bytewise(tt.message + ".\r\n")} {
			_, b := inBody(pieces, 0)
			header, err := b.Header(1000)
			header = bytes.Clone(header)
			if string(header) != tt.header || err != nil {
				t.Errorf("%q: header %q, %v", tt.message, header, err)
			}
			if rest, err := readBody(b); string(header)+rest != tt.message || err != io.EOF {
				t.Errorf("%q: header and body are %q, %v", tt.message, string(header)+rest, err)
			}
		}
	}
	_, b := inBody([][]byte{[]byte("A: " + strings.Repeat("x", 100) + "\r\n\r\n.\r\n")}, 0)
	if _, err := b.Header(50); err != ErrHeaderTooLarge {
		t.Errorf("a header over the limit: %v", err)
	}
}

func TestUnstuff(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"a\r\n":                    "a\r\n",
		"..\r\n":                   ".\r\n",
		".a\r\nb\r\n..c\r\n":       "a\r\nb\r\n.c\r\n",
		"a.\r\n.\r\nb..\r\n..\r\n": "a.\r\n\r\nb..\r\n.\r\n",
	} {
		if got := string(Unstuff([]byte(in))); got != want {
			t.Errorf("Unstuff(%q) = %q, want %q", in, got, want)
		}
		for cut := range len(in) + 1 {
			for later := cut; later <= len(in); later++ {
				var b bytes.Buffer
				u := NewUnstuffer(&b)
				for _, piece := range []string{in[:cut], in[cut:later], in[later:]} {
					if n, err := io.WriteString(u, piece); n != len(piece) || err != nil {
						t.Fatalf("%q: %d, %v", piece, n, err)
					}
				}
				if b.String() != want {
					t.Errorf("%q, cut at %d and %d: %q, want %q", in, cut, later, b.String(), want)
				}
			}
		}
	}
}

// FuzzBody compares bodies in fuzzed packets with the reference.
func FuzzBody(f *testing.F) {
	for _, row := range tsv(f, "testdata/end-of-data.tsv", 2) {
		f.Add("Subject: x\r\n\r\nbody"+ending(row[1])+"MAIL FROM:<a@example.com>\r\n.\r\n", uint16(3))
	}
	f.Add("..\r\n.\r\n", uint16(1))
	f.Fuzz(func(t *testing.T, input string, size uint16) {
		checkBody(t, input, split(input, int(size)+1))
	})
}

// ending decodes the escapes of end-of-data.tsv.
func ending(s string) string {
	return strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\0`, "\x00").Replace(s)
}

func BenchmarkBody(b *testing.B) {
	line := strings.Repeat("x", 76) + "\r\n"
	input := []byte(strings.Repeat(line, 1<<20/len(line)) + ".\r\n")
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		_, body := inBody([][]byte{input}, 0)
		if _, err := readBodyOnly(body); err != io.EOF {
			b.Fatal(err)
		}
		body.c.in.release()
	}
}

func readBodyOnly(b *Body) (n int, err error) {
	for {
		piece, err := b.Next()
		if err != nil {
			return n, err
		}
		n += len(piece)
	}
}
