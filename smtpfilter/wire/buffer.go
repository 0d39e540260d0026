package wire

import (
	"net"
	"sync"
)

// Sizes of a connection's read buffer: small between commands, large inside a message.
// A connection has a buffer only while that holds something: idle connections need
// none.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// buffer holds what was read from the client and not used yet. It must not be copied
// after the first read.
type buffer struct {
	b     []byte
	r, w  int
	small *[smallBuffer]byte // b's array, one of the two
	large *[largeBuffer]byte

	from      *Socket                      // the argument of readSocket
	wantLarge bool                         // the argument of readSocket
	try       func(fd uintptr) (done bool) // tryRead, bound once
}

// bytes returns the held bytes. They are valid until the next readFrom.
func (b *buffer) bytes() []byte { return b.b[b.r:b.w] }

// discard drops the first n bytes.
func (b *buffer) discard(n int) { b.r += n }

// full reports whether readFrom cannot read before something is discarded.
func (b *buffer) full() bool { return b.w > 0 && b.r == 0 && b.w == len(b.b) }

// readFrom reads once from c after the held bytes. There must be room.
func (b *buffer) readFrom(c net.Conn, large bool) (int, error) {
	if s, ok := c.(*Socket); ok {
		return b.readSocket(s, large)
	}
	b.makeRoom(large)
	n, err := c.Read(b.b[b.w:])
	b.w += n
	return n, err
}

// makeRoom gets a buffer of the wanted size and moves the held bytes to its start. It
// keeps a large buffer while its content would fill half of a small one.
func (b *buffer) makeRoom(large bool) {
	held := b.bytes()
	switch {
	case large && b.large == nil:
		array := largeBuffers.Get().(*[largeBuffer]byte)
		b.move(array[:])
		b.large = array
	case !large && b.small == nil && len(held) < smallBuffer/2:
		array := smallBuffers.Get().(*[smallBuffer]byte)
		b.move(array[:])
		b.small = array
	case b.r > 0:
		b.w, b.r = copy(b.b, held), 0
	}
}

// move moves the held bytes to another buffer and releases the old one.
func (b *buffer) move(to []byte) {
	n := copy(to, b.bytes())
	b.release()
	b.b, b.w = to, n
}

// release returns the buffer to its pool. The held bytes are lost.
func (b *buffer) release() {
	if b.small != nil {
		smallBuffers.Put(b.small)
	}
	if b.large != nil {
		largeBuffers.Put(b.large)
	}
	b.small, b.large = nil, nil
	b.b, b.r, b.w = nil, 0, 0
}
