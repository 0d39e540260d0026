package segment

import (
	"encoding/binary"
	"strings"
)

// The first byte of a record.
const (
	kindMask       = 7
	flagException  = 1 << 3
	flagDefer      = 1 << 4
	flagUntil      = 1 << 5
	flagShared     = 1 << 6 // the comment is in the section of comments
	flagInline     = 1 << 7 // the comment is in the record
	sharedRefBytes = 2
)

// appendRecord appends an entry as a record. A shared comment is stored as its number.
func appendRecord(b []byte, e *Entry, number uint16, shared bool) []byte {
	flags := e.Kind
	if e.Exception {
		flags |= flagException
	}
	if e.Defer {
		flags |= flagDefer
	}
	if e.Until != 0 {
		flags |= flagUntil
	}
	inline := !shared && (e.Reason != "" || e.Note != "")
	switch {
	case shared:
		flags |= flagShared
	case inline:
		flags |= flagInline
	}
	b = append(b, flags)
	if e.For == "" {
		b = binary.AppendUvarint(b, uint64(len(e.Key)))
		b = append(b, e.Key...)
	} else {
		b = binary.AppendUvarint(b, uint64(len(e.For)+1+len(e.Key)))
		b = AppendFor(b, e.For, e.Key)
	}
	b = binary.AppendUvarint(b, uint64(e.File))
	b = binary.AppendUvarint(b, uint64(e.Line))
	if e.Until != 0 {
		b = binary.AppendVarint(b, e.Until)
	}
	switch {
	case shared:
		b = binary.LittleEndian.AppendUint16(b, number)
	case inline:
		b = binary.AppendUvarint(b, uint64(len(e.Reason)))
		b = append(b, e.Reason...)
		b = append(b, e.Note...)
	}
	return b
}

// record is a parsed record. Its slices are parts of the stored one.
type record struct {
	flags      byte
	key        []byte
	file, line uint64
	until      int64
	comment    []byte // the rest: a number, or reason and note
}

// recordKey returns the key of a record, and the rest of it.
func recordKey(b []byte) (key, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n, width := uint64(b[1]), 1
	if n >= 0x80 {
		n, width = binary.Uvarint(b[1:])
		if width <= 0 {
			return nil, nil, false
		}
	}
	b = b[1+width:]
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// parseRecord parses a record. It trusts nothing in it.
func parseRecord(b []byte) (r record, ok bool) {
	key, rest, ok := recordKey(b)
	if !ok {
		return r, false
	}
	r.flags, r.key = b[0], key
	var widths [3]int
	r.file, widths[0] = binary.Uvarint(rest)
	rest = rest[max(widths[0], 0):]
	r.line, widths[1] = binary.Uvarint(rest)
	rest = rest[max(widths[1], 0):]
	widths[2] = 1
	if r.flags&flagUntil != 0 {
		r.until, widths[2] = binary.Varint(rest)
		rest = rest[max(widths[2], 0):]
	}
	r.comment = rest
	return r, widths[0] > 0 && widths[1] > 0 && widths[2] > 0
}

// entry returns the entry of a record, with copies of its strings in one allocation. In a
// segment with markers, keys may have a recipient's side.
func (r *record) entry(reason, note []byte, markers bool) Record {
	var b strings.Builder
	b.Grow(len(r.key) + len(reason) + len(note))
	b.Write(r.key)
	b.Write(reason)
	b.Write(note)
	text := b.String()
	key, comment := text[:len(r.key)], text[len(r.key):]
	recipient := ""
	if markers {
		if before, after, ok := strings.Cut(key, forEnd); ok {
			recipient, key = before, after
		}
	}
	return Record{
		For:       recipient,
		Key:       key,
		Kind:      r.flags & kindMask,
		Exception: r.flags&flagException != 0,
		Defer:     r.flags&flagDefer != 0,
		Until:     r.until,
		File:      int(r.file),
		Line:      int(r.line),
		Reason:    comment[:len(reason)],
		Note:      comment[len(reason):],
	}
}
