package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// bdat is the message in chunks that end at the given offsets of text and at its
// end.
func bdat(text string, ends ...int) string {
	var b strings.Builder
	from := 0
	for _, end := range ends {
		fmt.Fprintf(&b, "BDAT %d\r\n%s", end-from, text[from:end])
		from = end
	}
	fmt.Fprintf(&b, "BDAT %d LAST\r\n%s", len(text)-from, text[from:])
	return b.String()
}

// inChunks is a connection whose first BDAT command go-smtp has just taken.
func inChunks(t testing.TB, pieces [][]byte, cfg Config, binary bool) (*Conn, *Body) {
	t.Helper()
	cfg = cfg.withDefaults()
	c := newConn(&segments{pieces: pieces}, &cfg, nil)
	c.binary = binary
	if err := c.next(); err != nil || c.line != "DATA\r\n" {
		t.Fatalf("go-smtp is handed %q, %v", c.line, err)
	}
	c.line = ""
	c.finishReply(NewReply(354, "Go ahead"))
	return c, c.body
}

// left is what a connection has left for commands.
func left(c *Conn) string {
	rest := string(c.in.bytes())
	for _, p := range c.Conn.(*segments).pieces {
		rest += string(p)
	}
	return rest
}

// textFaults says, a byte at a time, what text holds that a message must not.
func textFaults(text string) (bare, nul bool) {
	for i := range len(text) {
		switch text[i] {
		case '\n':
			bare = bare || i == 0 || text[i-1] != '\r'
		case '\r':
			bare = bare || i+1 == len(text) || text[i+1] != '\n'
		case 0:
			nul = true
		}
	}
	return bare, nul
}

// checkChunks sends text in chunks, with commands after it, and compares the result.
func checkChunks(t *testing.T, text string, pieces [][]byte, binary bool) {
	t.Helper()
	bare, nul := textFaults(text)
	c, b := inChunks(t, pieces, Config{}, binary)
	defer c.in.release()
	got, err := readBody(b)
	switch {
	case binary || !bare && !nul:
		if err != io.EOF || got != text || b.Size() != int64(len(text)) {
			t.Errorf("%q (binary %v): got %q of size %d, %v", text, binary, got, b.Size(), err)
		}
	case err != ErrBareNewline && err != ErrNUL || err == ErrNUL && !nul || err == ErrBareNewline && !bare:
		t.Errorf("%q: %v", text, err)
	case !strings.HasPrefix(text, got) || strings.HasSuffix(got, "\r"):
		t.Errorf("%q: %q was passed on", text, got)
	}
	if b.Stuffed() || b.Binary() != binary {
		t.Errorf("Stuffed() = %v, Binary() = %v", b.Stuffed(), b.Binary())
	}
	chunk := b.chunk
	if err := b.Discard(); err != nil || c.last {
		t.Errorf("%q: discarding a chunk: %v, the connection ends: %v", text, err, c.last)
	}
	if rest := left(c); chunk.last && rest != "NOOP\r\n" {
		t.Errorf("%q: %q is left for commands", text, rest)
	} else if !strings.HasSuffix(rest, "NOOP\r\n") {
		t.Errorf("%q: %q is left", text, rest)
	}
}

// TestChunksExhaustively sends every string of up to 5 bytes in all pairs of
// chunks, whole and byte by byte.
func TestChunksExhaustively(t *testing.T) {
	count := everyString(t, 5, func(s string) {
		for pos := range len(s) + 1 {
			input := bdat(s, pos) + "NOOP\r\n"
			for _, binary := range []bool{false, true} {
				checkChunks(t, s, [][]byte{[]byte(input)}, binary)
				checkChunks(t, s, bytewise(input), binary)
			}
		}
	})
	t.Logf("%d strings", count)
}

// FuzzChunks sends fuzzed text in chunks and packets of fuzzed sizes.
func FuzzChunks(f *testing.F) {
	for _, row := range tsv(f, "testdata/end-of-data.tsv", 2) {
		f.Add("Subject: x\r\n\r\nbody"+ending(row[1])+"MAIL FROM:<a@example.com>\r\n.\r\n", uint16(30), uint16(40), uint16(7), false)
	}
	f.Add("\x00\r\n.\r\nBDAT 7 LAST\r\n", uint16(0), uint16(1), uint16(1), true)
	f.Add("a\r\nb\r\n", uint16(2), uint16(2), uint16(100), false)
	f.Fuzz(func(t *testing.T, text string, first, second, packet uint16, binary bool) {
		a := min(int(first), len(text))
		b := min(a+int(second), len(text))
		checkChunks(t, text, split(bdat(text, a, b)+"NOOP\r\n", int(packet)+1), binary)
	})
}

// split cuts input into packets of a size.
func split(input string, size int) (pieces [][]byte) {
	for left := []byte(input); len(left) > 0; {
		n := min(len(left), size)
		pieces = append(pieces, left[:n])
		left = left[n:]
	}
	return pieces
}

// TestBetweenChunks sends other commands before the last chunk.
func TestBetweenChunks(t *testing.T) {
	for _, tt := range []struct {
		commands string
		err      error  // what Next ends with
		replies  string // codes in order, the session's is 299
		closes   bool
	}{
		{"", io.EOF, "250 299", false},
		{"NOOP\r\nBDAT 0\r\nnoop x\r\n", io.EOF, "250 250 250 250 299", false},
		{"MAIL FROM:<a@example.com>\r\nDATA\r\nEHLO x\r\nWHAT\r\n", io.EOF, "250 503 503 503 500 299", false},
		{"RSET\r\n", ErrReset, "250 250", false},
		{"QUIT\r\n", ErrReset, "250 221", true},
		{"BDAT 1x\r\n", errNoChunk, "250 501", true},
		{"BDAT\r\n", errNoChunk, "250 501", true},
		{"BDAT 1 LAST x\r\n", errNoChunk, "250 501", true},
		{"NOOP\n", errNoChunk, "250 500", true},
		{"NO\x00P\r\n", errNoChunk, "250 500", true},
		{"Subject: x\r\n", errNoChunk, "250 500", true},
		{strings.Repeat("x", MaxCommandLine) + "\r\n", errNoChunk, "250 500", true},
		{strings.Repeat("DATA\r\n", 10), errNoChunk, "250" + strings.Repeat(" 503", 10) + " 421", true},
	} {
		input := "BDAT 3\r\na\r\n" + tt.commands + "BDAT 3 LAST\r\nb\r\n"
		for _, pieces := range [][][]byte{{[]byte(input)}, bytewise(input)} {
			c, b := inChunks(t, pieces, Config{}, false)
			_, err := readBody(b)
			if err != tt.err {
				t.Errorf("%q: %v, want %v", tt.commands, err, tt.err)
			}
			if err != io.EOF {
				b.Discard()
				c.CloseAfterReply() // as behind a 421
			}
			c.SetReply(NewReply(299, "the session's"))
			if err := c.next(); err != nil != (tt.closes && tt.err != ErrReset) {
				t.Errorf("%q: go-smtp is handed %q, %v", tt.commands, c.line, err)
			}
			c.finishReply(NewReply(250, "go-smtp's"))
			c.flush()
			if got := codes(c.Conn.(*segments).written.String()); got != tt.replies || c.ended != tt.closes {
				t.Errorf("%q: replies %s, want %s; the connection ends: %v", tt.commands, got, tt.replies, c.ended)
			}
		}
	}
}

// TestGivenUpBetweenChunks has the session refuse a message while the client is
// waited for, its last chunk answered: the refusal is the reply to the next one.
func TestGivenUpBetweenChunks(t *testing.T) {
	for next, want := range map[string]string{
		"BDAT 6 LAST\r\nQUIT\r\n":                   "250 451",
		"BDAT 6\r\nQUIT\r\nBDAT 6 LAST\r\nQUIT\r\n": "250 451 503",
		"NOOP\r\nBDAT 0 LAST\r\n":                   "250 250 451",
		"RSET\r\n":                                  "250 250",
		"":                                          "250 451",
	} {
		pieces := append([][]byte{[]byte("BDAT 3\r\na\r\n")}, bytewise(next)...)
		c, b := inChunks(t, pieces, Config{}, false)
		if piece, err := b.Next(); string(piece) != "a\r\n" || err != nil {
			t.Fatalf("%q, %v", piece, err)
		}
		if b.Ready() {
			t.Error("ready without the next command")
		}
		b.Discard()
		c.SetReply(NewReply(451, "the session's"))
		c.next()
		c.finishReply(NewReply(250, "go-smtp's"))
		c.next()
		c.flush()
		if got := codes(c.Conn.(*segments).written.String()); got != want {
			t.Errorf("%q: replies %s, want %s", next, got, want)
		}
	}
}

// codes are the codes of single-line replies.
func codes(replies string) string {
	var codes []string
	for line := range strings.Lines(replies) {
		codes = append(codes, line[:3])
	}
	return strings.Join(codes, " ")
}

// TestChunkSyntax reads the argument of BDAT.
func TestChunkSyntax(t *testing.T) {
	for _, tt := range []struct {
		line string
		size int64
		last bool
	}{
		{"BDAT 0", 0, false},
		{"bdat 0 last", 0, true},
		{"BDAT 86 Last", 86, true},
		{"BDAT  86  LAST ", 86, true},
		{"BDAT 9223372036854775807", 1<<63 - 1, false},
	} {
		cmd, reply := parseCommand(tt.line, terms{})
		if !reply.IsZero() || cmd.size != tt.size || cmd.last != tt.last || cmd.Verb != "BDAT" {
			t.Errorf("%q: %d, %v, reply %q", tt.line, cmd.size, cmd.last, reply)
		}
	}
	for _, line := range []string{
		"BDAT", "BDAT ", "BDAT LAST", "BDAT -1", "BDAT +1", "BDAT 01", "BDAT 00", "BDAT -0", "BDAT 1x", "BDAT 0x10",
		"BDAT 1_0", "BDAT 1e3", "BDAT 1.0", "BDAT 9223372036854775808", "BDAT 99999999999999999999", "BDAT 1 LATE",
		"BDAT 1 LA\u017fT", "BDAT 1 LAST LAST", "BDAT 1 2", "BDAT 1,LAST", "BDAT 1\tLAST", "BDAT 1\u00a0LAST",
	} {
		if _, reply := parseCommand(line, terms{}); !reply.Permanent() || !notCommands([]byte(line)) {
			t.Errorf("%q: reply %q, the connection ends: %v", line, reply, notCommands([]byte(line)))
		}
	}
}

// TestChunksSize takes a message of exactly the limit, in one chunk and in two,
// and refuses one byte more before it is sent.
func TestChunksSize(t *testing.T) {
	const text = "Subject: x\r\n\r\n.\r\n"
	size := int64(len(text))
	for _, ends := range [][]int{nil, {0}, {5}, {len(text)}} {
		for _, binary := range []bool{false, true} {
			_, b := inChunks(t, [][]byte{[]byte(bdat(text, ends...))}, Config{Rules: Rules{MaxMessageBytes: size}}, binary)
			if got, err := readBody(b); err != io.EOF || b.Size() != size || got != text {
				t.Errorf("chunks of the limit, ends %v: %v, size %d", ends, err, b.Size())
			}
			c, b := inChunks(t, [][]byte{[]byte(bdat(text, ends...) + "NOOP\r\n")}, Config{Rules: Rules{MaxMessageBytes: size - 1}}, binary)
			if _, err := readBody(b); err != ErrTooLarge {
				t.Errorf("chunks of one byte more, ends %v: %v", ends, err)
			}
			if err := b.Discard(); err != nil || c.last || !strings.HasSuffix(left(c), "NOOP\r\n") {
				t.Errorf("discarding them: %v, %q is left", err, left(c))
			}
		}
	}
	c, b := inChunks(t, [][]byte{[]byte(fmt.Sprintf("BDAT %d LAST\r\nNOOP\r\n", size+drainBytes+1))}, Config{Rules: Rules{MaxMessageBytes: size}}, false)
	if _, err := b.Next(); err != ErrTooLarge {
		t.Errorf("a huge chunk: %v", err)
	}
	if err := b.Discard(); err != nil || !c.last {
		t.Errorf("discarding a huge chunk: %v, the connection ends: %v", err, c.last)
	}
}

// TestChunksHeader finds the header section across chunks.
func TestChunksHeader(t *testing.T) {
	const text = "A: b\r\nC: d\r\n\r\n\r\nbody\r\n"
	for pos := range len(text) + 1 {
		for size := range len(text) {
			_, b := inChunks(t, split(bdat(text, pos), size+1), Config{}, false)
			section, err := b.Header(100)
			header := string(section)
			rest, restErr := readBody(b)
			if header != "A: b\r\nC: d\r\n\r\n" || err != nil || header+rest != text || restErr != io.EOF {
				t.Errorf("chunk %d, packets %d: header %q, %v; rest %q, %v", pos, size+1, header, err, rest, restErr)
			}
		}
	}
	c, b := inChunks(t, [][]byte{[]byte(bdat(text, 10) + "NOOP\r\n")}, Config{}, false)
	if _, err := b.Header(12); err != ErrHeaderTooLarge {
		t.Errorf("a header over the limit: %v", err)
	}
	if b.Discard(); c.last || left(c) != "NOOP\r\n" {
		t.Errorf("behind it, %q is left", left(c))
	}
}

// TestBinaryHeader refuses a header section that servers may read in different
// ways, whatever the body may hold.
func TestBinaryHeader(t *testing.T) {
	for text, want := range map[string]error{
		"A: b\r\n\r\n\x00\n\r":            nil,
		"A: b\nFrom: c\r\n\r\nbody":       ErrBareNewline,
		"A: b\rFrom: c\r\n\r\nbody":       ErrBareNewline,
		"A: b\n\nFrom: c\r\n\r\nbody":     ErrBareNewline,
		"A: b\r\nFrom: \x00c\r\n\r\nbody": ErrNUL,
		"A: b\r":                          ErrBareNewline,
	} {
		for pos := range len(text) {
			c, b := inChunks(t, [][]byte{[]byte(bdat(text, pos) + "NOOP\r\n")}, Config{}, true)
			if _, err := b.Header(100); err != want {
				t.Errorf("%q: %v, want %v", text, err, want)
			}
			if b.Discard(); c.last || !strings.HasSuffix(left(c), "NOOP\r\n") {
				t.Errorf("%q: behind it, %q is left", text, left(c))
			}
		}
	}
}

// TestChunksCut cuts a message in chunks at every byte.
func TestChunksCut(t *testing.T) {
	const text = "A: b\r\n\r\nbody\r\n"
	input := bdat(text, 3, 9)
	for pos := len("BDAT 3\r\n"); pos < len(input); pos++ {
		c, b := inChunks(t, [][]byte{[]byte(input[:pos])}, Config{}, false)
		if got, err := readBody(b); err != io.ErrUnexpectedEOF || !strings.HasPrefix(text, got) {
			t.Errorf("cut at %d: %q, %v", pos, got, err)
		}
		if err := b.Discard(); !errors.Is(err, io.ErrUnexpectedEOF) || !c.last {
			t.Errorf("cut at %d: discarding: %v, the connection ends: %v", pos, err, c.last)
		}
	}
}

// TestReady compares Ready with Next: if it returns false, Next waits for the next packet.
func TestReady(t *testing.T) {
	const text = "A: b\r\n\r\n.body\r\n"
	for name, input := range map[string]string{"DATA": text + ".\r\n", "BDAT": bdat(text, 0, 3, 5, 5, 9)} {
		for size := 1; size <= len(input); size++ {
			var c *Conn
			var b *Body
			if name == "DATA" {
				c, b = inBody(split(input, size), 0)
			} else {
				c, b = inChunks(t, split(input, size), Config{}, false)
			}
			var got string
			for {
				ready := b.Ready()
				before := len(left(c)) - len(c.in.bytes())
				piece, err := b.Next()
				if waited := len(left(c))-len(c.in.bytes()) < before; ready == waited && err == nil {
					t.Errorf("%s in packets of %d, behind %q: ready %v, waited %v", name, size, got, ready, waited)
				}
				if err != nil {
					break
				}
				got += string(piece)
			}
			if got != text {
				t.Errorf("%s in packets of %d: got %q", name, size, got)
			}
		}
	}
}

// TestBinaryData refuses DATA for a message that may hold any byte, and ends the
// session of a client that sends it all the same.
func TestBinaryData(t *testing.T) {
	for input, want := range map[string]string{
		"DATA\r\n":                         "503",
		"DATA\r\nSubject: x\r\n":           "503 421",
		"DATA\r\n|NOOP\r\n|Hello, this is": "503",
		"DATA\r\n|BDAT 3 LAST\r\n":         "503 503",
	} {
		var pieces [][]byte
		for piece := range strings.SplitSeq(input, "|") {
			pieces = append(pieces, []byte(piece))
		}
		cfg := Config{}.withDefaults()
		c := newConn(&segments{pieces: pieces}, &cfg, nil)
		c.inMail, c.binary = true, true
		for c.next() == nil {
			if c.line != "NOOP\r\n" {
				t.Errorf("%q: go-smtp is handed %q", input, c.line)
			}
			c.line = ""
		}
		c.flush()
		if got := codes(c.Conn.(*segments).written.String()); got != want {
			t.Errorf("%q: replies %s, want %s", input, got, want)
		}
	}
}

func BenchmarkChunks(b *testing.B) {
	line := strings.Repeat("x", 76) + "\r\n"
	input := []byte(bdat(strings.Repeat(line, 1<<20/len(line))))
	for _, binary := range []bool{false, true} {
		b.Run(fmt.Sprintf("binary=%v", binary), func(b *testing.B) {
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			for b.Loop() {
				c, body := inChunks(b, [][]byte{input}, Config{}, binary)
				if _, err := readBodyOnly(body); err != io.EOF {
					b.Fatal(err)
				}
				c.in.release()
			}
		})
	}
}
