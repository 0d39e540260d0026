package partial

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"iter"
	"slices"
	"strings"

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
// says whether they are dot-stuffed. Neither fields in traceFields nor the command that the
// client uses (DATA or BDAT) change the Sum.
func NewDigest(from string, header []byte, stuffed bool) *Digest {
	h := sha256.New()
	d := &Digest{h: h, body: h, atStart: true}
	if stuffed {
		d.body = wire.NewUnstuffer(h)
	}
	writeField(d.h, from)
	writeField(d.h, strings.TrimRight(string(untraced(header)), "\r\n"))
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

// traceFields are the fields that relays add, so that they may differ when a client sends a
// message again. All others are part of the message, unknown ones too: without one of them a
// message could be taken for another one that was delivered, and be lost. With one field too
// many in the Sum, recipients only get a copy again.
//
// A client sends the same bytes again from its queue, or another relay of its site does, with
// other trace fields. Exim signs at each attempt, with a new t= in DKIM-Signature and ARC-Seal.
// Nobody reads a signature, and what it signs is in the Sum.
var traceFields = []string{
	"received", "return-path", // RFC 5321, section 4.4
	"received-spf",                                                    // RFC 7208, section 9.1
	"authentication-results",                                          // RFC 8601
	"arc-seal", "arc-message-signature", "arc-authentication-results", // RFC 8617
	"dkim-signature",             // RFC 6376
	"delivered-to", "x-received", // of Postfix and qmail, and of Google
}

// untraced returns all fields except the trace fields, as written and in their order.
func untraced(header []byte) []byte {
	var rest []byte
	for f := range fields(header) {
		key, _, ok := bytes.Cut(f, []byte(":"))
		name := strings.ToLower(string(bytes.TrimRight(key, " \t")))
		if !ok || !slices.Contains(traceFields, name) {
			rest = append(rest, f...)
		}
	}
	return rest
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
