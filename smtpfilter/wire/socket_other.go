//go:build !unix

package wire

import "net"

// Socket is of use where there are Unix's system calls.
type Socket struct{ *net.TCPConn }

// NewSocket returns the connection.
func NewSocket(c net.Conn) net.Conn { return c }

func (b *buffer) readSocket(s *Socket, large bool) (int, error) {
	b.makeRoom(large)
	n, err := s.TCPConn.Read(b.b[b.w:])
	b.w += n
	return n, err
}
