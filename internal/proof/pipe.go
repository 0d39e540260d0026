package proof

import (
	"io"
	"sync"
)

const (
	pieceSize = 16 << 10

	// maxWaiting is how much of a message waits for its verifier, in pieces: a message of
	// up to 64 KiB never waits for DNS before its end.
	maxWaiting = 4
)

// pieces are the buffers of pipes.
var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// piece is a part of a message.
type piece struct {
	buf *[pieceSize]byte
	len int
}

// pipe passes a message to a verifier, which reads it in a goroutine of its own. It holds up
// to maxWaiting pieces between them.
type pipe struct {
	waiting chan piece
	stopped chan struct{} // closed when the verifier reads no more

	present piece // which is read
	read    int   // of it
}

func newPipe() *pipe {
	return &pipe{waiting: make(chan piece, maxWaiting), stopped: make(chan struct{})}
}

// write passes on a part of the message. Once the verifier has stopped it does nothing.
func (p *pipe) write(text []byte) {
	for len(text) > 0 {
		next := piece{buf: pieces.Get().(*[pieceSize]byte)}
		next.len = copy(next.buf[:], text)
		text = text[next.len:]
		select {
		case <-p.stopped:
			return
		case p.waiting <- next:
		}
	}
}

// end says that the message has ended.
func (p *pipe) end() { close(p.waiting) }

// stop says that the verifier reads no more.
func (p *pipe) stop() { close(p.stopped) }

// Read reads the next part of the message. It never fails: after a part that is missing, no
// signature is valid.
func (p *pipe) Read(b []byte) (int, error) {
	for p.read == p.present.len {
		if p.present.buf != nil {
			pieces.Put(p.present.buf)
		}
		next, ok := <-p.waiting
		if p.present, p.read = next, 0; !ok {
			return 0, io.EOF
		}
	}
	n := copy(b, p.present.buf[p.read:p.present.len])
	p.read += n
	return n, nil
}
