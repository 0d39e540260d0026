package partial

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"iter"

	"spamgate/smtpfilter/wire"
)

// Digest computes the Sum of a message while the message is passed on.
type Digest struct {
	h       hash.Hash
	body    io.Writer // h, without dot-stuffing if there is any
	atStart bool      // the next byte begins a line
}

// NewDigest returns the Digest of a message with a reverse-path and a header section,
// which is not dot-stuffed. The caller writes the body in pieces of any length; stuffed
// says whether they are dot-stuffed. Neither trace fields that relays add nor the command
// that the client uses (DATA or BDAT) change the Sum.
func NewDigest(from string, header []byte, stuffed bool) *Digest {
	h := sha256.New()
	d := &Digest{h: h, body: h, atStart: true}
	if stuffed {
		d.body = wire.NewUnstuffer(h)
	}
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

// writeField writes a string with its length before it.
func writeField(w io.Writer, s string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(s)))
	w.Write(length[:])
	io.WriteString(w, s)
}

// Write adds the next piece of the body. It never fails.
func (d *Digest) Write(p []byte) (int, error) {
	if len(p) > 0 {
		d.atStart = p[len(p)-1] == '\n'
	}
	return d.body.Write(p)
}

// Sum returns the Sum of what was written. It adds the final CRLF, which a body that
// came in chunks may lack.
func (d *Digest) Sum() (s Sum) {
	if !d.atStart {
		io.WriteString(d.h, "\r\n")
		d.atStart = true
	}
	d.h.Sum(s[:0])
	return s
}

// field returns the values of all fields with a name, continuation lines included and
// without the space around each; nil if there is none.
func field(header []byte, name string) []byte {
	var values []byte
	for f := range fields(header) {
		if key, value, ok := bytes.Cut(f, []byte(":")); ok && isNamed(key, name) {
			values = append(append(values, bytes.TrimSpace(value)...), '\n')
		}
	}
	return values
}

// untraced returns all fields except the trace fields that relays add.
func untraced(header []byte) []byte {
	var rest []byte
	for f := range fields(header) {
		key, _, ok := bytes.Cut(f, []byte(":"))
		if !ok || !isNamed(key, "received") && !isNamed(key, "return-path") {
			rest = append(rest, f...)
		}
	}
	return rest
}

func isNamed(key []byte, name string) bool {
	return bytes.EqualFold(bytes.TrimRight(key, " \t"), []byte(name))
}

// fields returns the fields of a header section, with their line ends.
func fields(header []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start, end := 0, 0
		for line := range bytes.Lines(header) {
			if end > start && line[0] != ' ' && line[0] != '\t' {
				if !yield(header[start:end]) {
					return
				}
				start = end
			}
			end += len(line)
		}
		if end > start {
			yield(header[start:end])
		}
	}
}
