package delta

import (
	"bufio"
	"encoding/binary"
)

// ops writes the operations of a delta.
//
// A copy is open until something else follows it. Its bytes are kept as long as it is
// short, since a short one is inserted instead.
type ops struct {
	w         *bufio.Writer
	inserting []byte // at most maxAt, and a line
	from, n   int64  // the open copy, if n is not 0
	short     []byte // the bytes of the open copy while n < minOp
	end       int64  // where the last copy that was written ended
	inserted  int64
}

// insert inserts bytes.
func (o *ops) insert(b []byte) error {
	if err := o.endCopy(); err != nil {
		return err
	}
	o.inserting = append(o.inserting, b...)
	if len(o.inserting) >= maxAt {
		return o.flush()
	}
	return nil
}

// copy copies bytes that the old file has at an offset.
func (o *ops) copy(b []byte, from int64) error {
	if o.n > 0 && o.from+o.n != from {
		if err := o.endCopy(); err != nil {
			return err
		}
	}
	if o.n == 0 {
		o.from = from
	}
	if o.n < minOp {
		o.short = append(o.short, b...)
	}
	o.n += int64(len(b))
	return nil
}

// instead copies the last n bytes that are to be inserted from an offset of the old file.
// There is no open copy.
func (o *ops) instead(n int, from int64) {
	text := o.inserting[len(o.inserting)-n:]
	o.inserting = o.inserting[:len(o.inserting)-n]
	o.from, o.n = from, int64(n)
	o.short = append(o.short[:0], text[:min(n, minOp)]...)
}

// endCopy ends the open copy.
func (o *ops) endCopy() error {
	switch {
	case o.n == 0:
		return nil
	case o.n >= minOp:
		return o.flush()
	}
	o.inserting = append(o.inserting, o.short...)
	o.n, o.short = 0, o.short[:0]
	return nil
}

// flush writes an operation: what is to be inserted, and the open copy.
func (o *ops) flush() error {
	b := binary.AppendUvarint(nil, uint64(len(o.inserting)))
	b = append(b, o.inserting...)
	b = binary.AppendUvarint(b, uint64(o.n))
	if o.n > 0 {
		b = binary.AppendVarint(b, o.from-o.end)
		o.end = o.from + o.n
	}
	o.inserted += int64(len(o.inserting))
	o.inserting, o.n, o.short = o.inserting[:0], 0, o.short[:0]
	_, err := o.w.Write(b)
	return err
}

// close writes what is left.
func (o *ops) close() error {
	if err := o.endCopy(); err != nil {
		return err
	}
	if len(o.inserting) > 0 {
		if err := o.flush(); err != nil {
			return err
		}
	}
	return o.w.Flush()
}
