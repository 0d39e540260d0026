package wire

import (
	"bytes"
	"errors"
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
	cfg := Config{MaxMessageBytes: limit}.withDefaults()
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

// reference says what becomes of a client's bytes behind 354, a byte at a time:
// the message, what is left over for commands, and why it is refused.
func reference(s string) (message, rest string, err error) {
	end := strings.Index("\r\n"+s, "\r\n.\r\n")
	if end < 0 {
		return "", "", io.ErrUnexpectedEOF
	}
	message, rest = s[:end], s[end+3:]
	for i := range len(message) {
		switch message[i] {
		case 0:
			return "", rest, ErrNUL
		case '\n':
			if i == 0 || message[i-1] != '\r' {
				return "", rest, ErrBareNewline
			}
		case '\r':
			if i+1 == len(message) || message[i+1] != '\n' {
				return "", rest, ErrBareNewline
			}
		}
	}
	return message, rest, nil
}

// checkBody compares a Body with the reference.
func checkBody(t *testing.T, input string, pieces [][]byte) {
	t.Helper()
	wantMessage, wantRest, wantErr := reference(input)
	c, b := inBody(pieces, 0)
	got, err := readBody(b)
	discardErr := b.Discard()
	switch {
	case wantErr == nil:
		if err != io.EOF || got != wantMessage || discardErr != nil {
			t.Errorf("%q: got %q, %v, %v; want %q", input, got, err, discardErr, wantMessage)
		}
	case wantErr == io.ErrUnexpectedEOF:
		if err == io.EOF || discardErr == nil {
			t.Errorf("%q: taken as whole (%q, %v, %v), but has no end", input, got, err, discardErr)
		}
		return
	default:
		// Which of several faults is named depends on the packets.
		if !errors.Is(err, ErrNUL) && !errors.Is(err, ErrBareNewline) || discardErr != nil || !c.last {
			t.Errorf("%q: got %q, %v, %v; want %v and the end of the connection", input, got, err, discardErr, wantErr)
		}
	}
	rest := string(c.in.bytes())
	for _, p := range c.Conn.(*segments).pieces {
		rest += string(p)
	}
	if rest != wantRest {
		t.Errorf("%q: the body ends before %q, want before %q", input, rest, wantRest)
	}
}

// TestBodyExhaustively feeds every string of up to 6 of the bytes that matter,
// behind a first line and in front of a real end, whole and byte by byte.
func TestBodyExhaustively(t *testing.T) {
	const alphabet = "\r\n.\x00a"
	longest := 6
	if testing.Short() {
		longest = 4
	}
	var try func(s string)
	count := 0
	try = func(s string) {
		input := "x\r\n" + s + "\r\n.\r\nQUIT\r\n"
		checkBody(t, input, [][]byte{[]byte(input)})
		checkBody(t, input, bytewise(input))
		checkBody(t, s, bytewise(s))
		if count++; t.Failed() || len(s) == longest {
			return
		}
		for i := range len(alphabet) {
			try(s + alphabet[i:i+1])
		}
	}
	try("")
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
			at := rng.IntN(msg.Len())
			input = input[:at] + string("\r\n\x00"[rng.IntN(3)]) + input[at:]
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
	}
}

// FuzzBody compares bodies in fuzzed packets with the reference.
func FuzzBody(f *testing.F) {
	for _, row := range tsv(f, "testdata/end-of-data.tsv", 2) {
		f.Add("Subject: x\r\n\r\nbody"+ending(row[1])+"MAIL FROM:<a@example.com>\r\n.\r\n", uint16(3))
	}
	f.Add("..\r\n.\r\n", uint16(1))
	f.Fuzz(func(t *testing.T, input string, size uint16) {
		var pieces [][]byte
		for left := []byte(input); len(left) > 0; {
			n := min(len(left), int(size)+1)
			pieces = append(pieces, left[:n])
			left = left[n:]
		}
		checkBody(t, input, pieces)
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
