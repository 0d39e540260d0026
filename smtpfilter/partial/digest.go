package partial

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
)

// Digest computes the Sum of a message while it passes.
type Digest struct {
	h       hash.Hash
	stuffed bool
	atStart bool // the next byte begins a line
}

// NewDigest begins the digest of a message: with its reverse-path and its header
// section, without dot-stuffing. The body is written to it in pieces of any length,
// dot-stuffed or not. Neither relays that add trace fields nor the way in which a
// client sends it (DATA or BDAT) change the Sum.
func NewDigest(from string, header []byte, stuffed bool) *Digest {
	d := &Digest{h: sha256.New(), stuffed: stuffed, atStart: true}
	writeField(d.h, from)
	if id := bytes.TrimSpace(field(header, "message-id")); len(id) > 0 {
		for _, name := range []string{"message-id", "date", "subject", "from", "to"} {
			writeField(d.h, string(field(header, name)))
		}
	} else {
		writeField(d.h, string(untraced(header)))
	}
	return d
}

// writeField writes a string so that where it ends is certain.
func writeField(w io.Writer, s string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(s)))
	w.Write(length[:])
	io.WriteString(w, s)
}

// Write takes the next piece of the body. It never fails.
func (d *Digest) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	ends := p[n-1] == '\n'
	if d.stuffed {
		if d.atStart && p[0] == '.' {
			p = p[1:]
		}
		for {
			i := bytes.Index(p, []byte("\n."))
			if i < 0 {
				break
			}
			d.h.Write(p[:i+1])
			p = p[i+2:]
		}
	}
	d.h.Write(p)
	d.atStart = ends
	return n, nil
}

// Sum returns the Sum of what was written. The last line of a body that came in
// chunks may lack its CRLF, which DATA cannot leave out.
func (d *Digest) Sum() (s Sum) {
	if !d.atStart {
		io.WriteString(d.h, "\r\n")
		d.atStart = true
	}
	d.h.Sum(s[:0])
	return s
}

// field returns the fields of a name, continuation lines included, without space
// around their values; nil if there is none.
func field(header []byte, name string) []byte {
	var found []byte
	eachField(header, func(field []byte) {
		if key, value, ok := bytes.Cut(field, []byte(":")); ok && named(key, name) {
			found = append(append(found, bytes.TrimSpace(value)...), '\n')
		}
	})
	return found
}

// untraced returns all fields but the trace fields that relays put before a message.
func untraced(header []byte) []byte {
	var rest []byte
	eachField(header, func(field []byte) {
		key, _, ok := bytes.Cut(field, []byte(":"))
		if !ok || !named(key, "received") && !named(key, "return-path") {
			rest = append(rest, field...)
		}
	})
	return rest
}

func named(key []byte, name string) bool {
	return bytes.EqualFold(bytes.TrimRight(key, " \t"), []byte(name))
}

// eachField calls do with each field of a header section, with its line ends.
func eachField(header []byte, do func(field []byte)) {
	for len(header) > 0 {
		end := 0
		for {
			i := bytes.IndexByte(header[end:], '\n')
			if i < 0 {
				end = len(header)
				break
			}
			end += i + 1
			if end == len(header) || header[end] != ' ' && header[end] != '\t' {
				break
			}
		}
		do(header[:end])
		header = header[end:]
	}
}
