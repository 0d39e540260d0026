package wire

import (
	"io"
	"sync"
)

// Sizes of a connection's read buffer: small between commands, so that idle
// connections cost little, and large inside a message.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// buffer holds what was read from the client and not used yet.
type buffer struct {
	b     []byte
	r, w  int
	large *[largeBuffer]byte // b's array while it is a large one
}

// bytes is what is held. It is valid until the next readFrom.
func (b *buffer) bytes() []byte { return b.b[b.r:b.w] }

// discard drops the first n bytes.
func (b *buffer) discard(n int) { b.r += n }

// full reports that readFrom can't read more before something is discarded.
func (b *buffer) full() bool { return b.w > 0 && b.r == 0 && b.w == len(b.b) }

// readFrom reads once from r behind what is held. There must be room.
func (b *buffer) readFrom(r io.Reader, large bool) (int, error) {
	b.resize(large)
	if b.r > 0 {
		b.w = copy(b.b, b.b[b.r:b.w])
		b.r = 0
	}
	n, err := r.Read(b.b[b.w:])
	b.w += n
	return n, err
}

// resize takes a large buffer where one is wanted, and gives it back when one
// is no longer wanted and its content fits the small one.
func (b *buffer) resize(large bool) {
	held := b.bytes()
	switch {
	case large && b.large == nil:
		b.large = largeBuffers.Get().(*[largeBuffer]byte)
		b.w, b.r = copy(b.large[:], held), 0
		b.b = b.large[:]
	case !large && b.large != nil && len(held) < smallBuffer/2:
		small := make([]byte, smallBuffer)
		b.w, b.r = copy(small, held), 0
		b.release()
		b.b = small
	case b.b == nil:
		b.b = make([]byte, smallBuffer)
	}
}

// release gives a large buffer back. What was held is gone.
func (b *buffer) release() {
	if b.large != nil {
		largeBuffers.Put(b.large)
		b.large = nil
	}
	b.b = nil
}
