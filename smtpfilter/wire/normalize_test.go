package wire

import (
	"io"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// normalizing is a Config under which every client's newlines are normalised.
// It counts of how many messages Noticed has heard.
func normalizing(noticed *int) Config {
	return Config{
		Normalize: func(netip.Addr) bool { return true },
		Noticed: func(_ *Conn, what string) {
			if what == "bare newlines normalised" {
				*noticed++
			}
		},
	}.withDefaults()
}

// normalized is what a text without dot-stuffing becomes, a byte at a time.
func normalized(text string) string {
	var out strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\r' && (i+1 == len(text) || text[i+1] != '\n'):
			out.WriteByte(' ')
		case c == '\n' && (i == 0 || text[i-1] != '\r'):
			out.WriteString("\r\n")
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// unstuffed removes the stuffing from text whose lines end in CRLF alone.
func unstuffed(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll("\r\n"+text, "\r\n.", "\r\n"), "\r\n")
}

// checkNormalized compares what becomes of DATA with the plain functions above.
// What is passed on is clean, and holds no end of a message.
func checkNormalized(t *testing.T, input string, pieces [][]byte) {
	t.Helper()
	want := reference(input)
	noticed := 0
	cfg := normalizing(&noticed)
	c := newConn(&segments{pieces: pieces}, &cfg, nil)
	c.body = newBody(c)
	got, err := readBody(c.body)
	defer c.in.release()

	bare, nul := textFaults(got)
	if bare && want.ended || nul || strings.Contains("\r\n"+got, "\r\n.\r\n") {
		t.Errorf("%q: %q is passed on", input, got)
	}
	switch {
	case !want.ended:
		if err == io.EOF {
			t.Errorf("%q: taken as whole, but has no end", input)
		}
		return
	case want.nul:
		if err != ErrNUL {
			t.Errorf("%q: %v, want %v", input, err, ErrNUL)
		}
		c.body.Discard()
	case err != io.EOF:
		t.Errorf("%q: %v", input, err)
	default:
		content := normalized(unstuffed(want.message))
		if unstuffed(got) != content || c.body.Size() != int64(len(content)) {
			t.Errorf("%q: got %q of size %d, want what is stuffed for %q", input, got, c.body.Size(), content)
		}
		if !want.bare && got != want.message {
			t.Errorf("%q: nothing was to be changed, but got %q", input, got)
		}
		if noticed > 1 || noticed == 1 != want.bare {
			t.Errorf("%q: noticed %d times", input, noticed)
		}
		c.body.Discard()
		if doubtful := strings.HasSuffix(want.message, "\r\r\n"); c.last != doubtful {
			t.Errorf("%q: the connection is to end: %v, want %v", input, c.last, doubtful)
		}
	}
	if rest := left(c); rest != want.rest {
		t.Errorf("%q: the body ends before %q, want before %q", input, rest, want.rest)
	}
}

func TestNormalizeExhaustively(t *testing.T) {
	everyString(t, 5, func(s string) {
		for _, input := range []string{s + "\r\n.\r\nQUIT\r\n", "a\n" + s + "a\r\n.\r\n"} {
			checkNormalized(t, input, [][]byte{[]byte(input)})
			checkNormalized(t, input, bytewise(input))
		}
	})
}

// TestNormalizeRandomly feeds longer strings, and lines longer than the buffer.
func TestNormalizeRandomly(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var text strings.Builder
		for range rng.IntN(40) {
			text.WriteString([]string{"\r", "\n", ".", "a", "\r\n", "\n.", "\r\n.", "\n.\r"}[rng.IntN(8)])
			if rng.IntN(400) == 0 {
				text.WriteString(strings.Repeat(string("a.\r"[rng.IntN(3)]), largeBuffer-2+rng.IntN(5)))
			}
		}
		input := text.String() + "\r\n.\r\n"
		checkNormalized(t, input, split(input, 1+rng.IntN(text.Len()+1)))
	}
}

// TestNormalizeChunks sends every string of up to 5 bytes in all pairs of chunks, without
// stuffing. A newline may be divided between them.
func TestNormalizeChunks(t *testing.T) {
	everyString(t, 5, func(s string) {
		for pos := range len(s) + 1 {
			input := bdat(s, pos)
			for _, pieces := range [][][]byte{{[]byte(input)}, bytewise(input)} {
				noticed := 0
				c, b := inChunks(t, pieces, normalizing(&noticed), false)
				bare, nul := textFaults(s)
				got, err := readBody(b)
				switch {
				case nul && err != ErrNUL:
					t.Errorf("%q: %v, want %v", s, err, ErrNUL)
				case !nul && (err != io.EOF || got != normalized(s) || b.Size() != int64(len(got)) || noticed == 1 != bare):
					t.Errorf("%q in chunks of %d: got %q of size %d, %v, noticed %d times", s, pos, got, b.Size(), err, noticed)
				}
				c.in.release()
			}
		}
	})
}

// TestNormalizeHeader finds the end of the header section after normalization.
func TestNormalizeHeader(t *testing.T) {
	const input = "A: b\nC: d\n\n.body\r\n.\r\n"
	for _, pieces := range [][][]byte{{[]byte(input)}, bytewise(input)} {
		noticed := 0
		cfg := normalizing(&noticed)
		c := newConn(&segments{pieces: pieces}, &cfg, nil)
		c.body = newBody(c)
		section, err := c.body.Header(100)
		header := string(section)
		rest, _ := readBody(c.body)
		if header != "A: b\r\nC: d\r\n\r\n" || rest != "..body\r\n" || err != nil || noticed != 1 {
			t.Errorf("header %q, %v, rest %q, noticed %d times", header, err, rest, noticed)
		}
	}
}

// TestNormalizeSize counts what is passed on.
func TestNormalizeSize(t *testing.T) {
	const input = "A: b\n\n.x\n.\r\n\r\n.\r\n"
	for limit, want := range map[int64]error{17: io.EOF, 16: ErrTooLarge} {
		noticed := 0
		cfg := normalizing(&noticed)
		cfg.MaxMessageBytes = limit
		c := newConn(&segments{pieces: bytewise(input)}, &cfg, nil)
		c.body = newBody(c)
		if got, err := readBody(c.body); err != want {
			t.Errorf("limit %d: %q of size %d, %v", limit, got, c.body.Size(), err)
		}
	}
}

// TestNormalizeAsked asks by the client's address, and refuses for all others.
func TestNormalizeAsked(t *testing.T) {
	cfg := Config{Normalize: func(client netip.Addr) bool { return client.IsValid() }}.withDefaults()
	c := newConn(&segments{pieces: [][]byte{[]byte("a\nb\r\n.\r\n")}}, &cfg, nil)
	c.body = newBody(c)
	if _, err := readBody(c.body); err != ErrBareNewline {
		t.Errorf("a client that is not asked for: %v", err)
	}
}

// FuzzNormalize compares fuzzed DATA with the plain functions.
func FuzzNormalize(f *testing.F) {
	for _, row := range tsv(f, "testdata/end-of-data.tsv", 2) {
		f.Add("Subject: x\r\n\r\nbody"+ending(row[1])+"MAIL FROM:<a@example.com>\r\n.\r\n", uint16(3))
	}
	f.Add("\n.\r\n\r\n.\n\r\n..\r\n\r\r\n.\r\n", uint16(1))
	f.Fuzz(func(t *testing.T, input string, size uint16) {
		checkNormalized(t, input, split(input, int(size)+1))
	})
}
