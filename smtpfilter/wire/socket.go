package wire

import (
	"io"
	"net"
	"os"
	"syscall"
)

// Socket reads from and writes to a TCP connection with less overhead than its own
// methods: see readNow. One goroutine may read at a time, and one may write. Deadlines
// are those of the TCPConn.
type Socket struct {
	*net.TCPConn
	raw syscall.RawConn

	try func(fd uintptr) (done bool) // reads once into p
	p   []byte
	n   int
	err error

	tryWrite func(fd uintptr) (done bool) // writes what is left of out
	out      []byte
	written  int
	writeErr error
}

// NewSocket returns a Socket for a TCP connection, and any other connection unchanged.
func NewSocket(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok { // the Read of a type around a TCPConn may do more
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	s := &Socket{TCPConn: tcp, raw: raw}
	s.try, s.tryWrite = s.readOnce, s.writeRest
	return s
}

// Read reads once, waiting for the deadline at most.
func (s *Socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.p = p
	n, err := s.read(s.try)
	return n, s.fault("read", err)
}

// fault returns an error in the form of the TCPConn's.
func (s *Socket) fault(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if raw, ok := err.(*net.OpError); ok {
		err = raw.Err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

// read calls try when there may be something to read, until it is done.
func (s *Socket) read(try func(fd uintptr) (done bool)) (int, error) {
	s.n, s.err = 0, nil
	if err := s.raw.Read(try); err != nil {
		return 0, err
	}
	return s.n, s.err
}

// readOnce reads into p, and returns false if nothing has arrived.
func (s *Socket) readOnce(fd uintptr) (done bool) {
	n, err := readNow(fd, s.p)
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != nil:
		s.err = os.NewSyscallError("read", err)
	case n == 0:
		s.err = io.EOF
	}
	s.n, s.p = max(n, 0), nil
	return true
}

// Write writes all of p, waiting for the deadline at most.
func (s *Socket) Write(p []byte) (int, error) {
	s.out, s.written, s.writeErr = p, 0, nil
	err := s.raw.Write(s.tryWrite)
	if err == nil {
		err = s.writeErr
	}
	s.out = nil
	return s.written, s.fault("write", err)
}

// writeRest writes the rest of out, and returns false if the kernel does not take all.
func (s *Socket) writeRest(fd uintptr) (done bool) {
	for s.written < len(s.out) {
		n, err := writeNow(fd, s.out[s.written:])
		if err == syscall.EAGAIN {
			return false
		}
		if err != nil {
			s.writeErr = os.NewSyscallError("write", err)
			return true
		}
		s.written += n
	}
	return true
}

// readSocket reads once from s after the held bytes. It holds no buffer while it waits
// for the client.
func (b *buffer) readSocket(s *Socket, large bool) (int, error) {
	if b.from != s {
		b.from, b.try = s, b.tryRead
	}
	b.wantLarge = large
	return s.read(b.try)
}

// tryRead reads what has arrived. If nothing has, it releases an empty buffer and
// returns false, to be called again.
func (b *buffer) tryRead(fd uintptr) (done bool) {
	b.makeRoom(b.wantLarge)
	b.from.p = b.b[b.w:]
	if !b.from.readOnce(fd) {
		b.from.p = nil // it may be released
		if b.r == b.w {
			b.release()
		}
		return false
	}
	b.w += b.from.n
	return true
}

// Pending reports whether a connection has bytes to read. It does not wait, whatever the
// deadline, and reads none. The error is io.EOF if the peer has closed the connection.
// For a connection that is not a socket, and cannot tell by itself, it returns false.
func Pending(c net.Conn) (pending bool, err error) {
	if c, ok := c.(interface{ Pending() (bool, error) }); ok {
		return c.Pending()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false, err
	}
	var n int
	var recvErr error
	err = raw.Control(func(fd uintptr) {
		var buf [1]byte
		for {
			n, _, recvErr = syscall.Recvfrom(int(fd), buf[:], syscall.MSG_PEEK)
			if recvErr != syscall.EINTR {
				return
			}
		}
	})
	switch {
	case err != nil:
		return false, err
	case recvErr == syscall.EAGAIN || recvErr == syscall.EWOULDBLOCK:
		return false, nil
	case recvErr != nil:
		return false, recvErr
	case n == 0:
		return false, io.EOF
	}
	return true, nil
}
