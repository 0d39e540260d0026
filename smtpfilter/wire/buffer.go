package wire

import (
	"net"
	"sync"
)

// Sizes of a connection's read buffer: small between commands, large inside a
// message. A connection has one only while it holds something: those that wait
// for their client, idle ones above all, cost nothing here.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// buffer holds what was read from the client and not used yet. It must not be
// copied once it was read into.
type buffer struct {
	b     []byte
	r, w  int
	small *[smallBuffer]byte // b's array, one of the two
	large *[largeBuffer]byte

	from      *Socket                      // that is being read
	wantLarge bool                         // … into a large buffer
	try       func(fd uintptr) (done bool) // … by this, which is made once
}

// bytes is what is held. It is valid until the next readFrom.
func (b *buffer) bytes() []byte { return b.b[b.r:b.w] }

// discard drops the first n bytes.
func (b *buffer) discard(n int) { b.r += n }

// full reports that readFrom can't read more before something is discarded.
func (b *buffer) full() bool { return b.w > 0 && b.r == 0 && b.w == len(b.b) }

// readFrom reads once from c behind what is held. There must be room.
func (b *buffer) readFrom(c net.Conn, large bool) (int, error) {
	if s, ok := c.(*Socket); ok {
		return b.readSocket(s, large)
	}
	b.makeRoom(large)
	n, err := c.Read(b.b[b.w:])
	b.w += n
	return n, err
}

// makeRoom takes a buffer of the wanted size and moves what is held to its
// start. A large one is kept while its content does not fit a small one well.
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

// move moves what is held to another buffer and gives the old one back.
func (b *buffer) move(to []byte) {
	n := copy(to, b.bytes())
	b.release()
	b.b, b.w = to, n
}

// release gives the buffer back. What was held is gone.
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
