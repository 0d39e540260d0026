//go:build !unix

package wire

import "net"

type socket struct{}

// readSocket reads once from c behind what is held.
func (b *buffer) readSocket(c *net.TCPConn, large bool) (int, error) {
	b.makeRoom(large)
	n, err := c.Read(b.b[b.w:])
	b.w += n
	return n, err
}
