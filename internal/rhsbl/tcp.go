package rhsbl

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"spamgate/internal/door"
)

// How long a client over TCP may wait before a question, and take for a question and its
// answer (RFC 7766, section 6.2.3: some seconds).
const (
	tcpIdle    = 10 * time.Second
	tcpMessage = 5 * time.Second
)

// Serve answers questions over TCP until Shutdown, and closes the listener.
func (s *Server) Serve(l net.Listener) error { return s.tcp.Serve(l) }

// serveConn answers one question after the other, however many the client sends at once.
func (s *Server) serveConn(c *door.Conn) {
	client := addrOf(c.RemoteAddr())
	if !s.state.Load().allows(client) {
		s.counts.add(Refused)
		return
	}
	var question, out []byte
	for c.Wait(tcpIdle) == nil && c.SetDeadline(time.Now().Add(tcpMessage)) == nil {
		var size [2]byte
		if _, err := io.ReadFull(c.Reader, size[:]); err != nil {
			return
		}
		question = append(question[:0], make([]byte, binary.BigEndian.Uint16(size[:]))...)
		if _, err := io.ReadFull(c.Reader, question); err != nil {
			return
		}
		answer := s.answer(question, client, false, out)
		if answer == nil {
			return
		}
		out = binary.BigEndian.AppendUint16(nil, uint16(len(answer)))
		if _, err := c.Write(append(out, answer...)); err != nil {
			return
		}
	}
}

// addrOf returns the address of a client.
func addrOf(a net.Addr) netip.Addr {
	if a, ok := a.(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
