//go:build unix

package wire

import (
	"io"
	"net"
	"os"
	"syscall"
)

// socket reads from a TCP connection in such a way that no buffer is held while
// the client is waited for. It costs the same system calls as the connection's
// own Read.
type socket struct {
	conn  *net.TCPConn
	raw   syscall.RawConn
	try   func(fd uintptr) (done bool)
	large bool // a large buffer is wanted
	n     int  // what try has read
	err   error
}

// readSocket reads once from c behind what is held, waiting for its deadline at
// most.
func (b *buffer) readSocket(c *net.TCPConn, large bool) (int, error) {
	if b.socket.conn != c {
		raw, err := c.SyscallConn()
		if err != nil {
			return 0, err
		}
		b.socket = socket{conn: c, raw: raw, try: b.tryRead}
	}
	b.socket.large = large
	if err := b.socket.raw.Read(b.socket.try); err != nil {
		return 0, err
	}
	return b.socket.n, b.socket.err
}

// tryRead reads what is there. Where nothing is, it gives an empty buffer back
// and is called again when there is.
func (b *buffer) tryRead(fd uintptr) (done bool) {
	b.makeRoom(b.socket.large)
	n, err := syscall.Read(int(fd), b.b[b.w:])
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), b.b[b.w:])
	}
	b.socket.n, b.socket.err = max(n, 0), nil
	switch {
	case err == syscall.EAGAIN:
		if b.r == b.w {
			b.release()
		}
		return false
	case err != nil:
		b.socket.err = os.NewSyscallError("read", err)
	case n == 0:
		b.socket.err = io.EOF
	}
	b.w += b.socket.n
	return true
}
