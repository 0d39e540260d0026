package rhsbl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/miekg/dns"
)

// ServePacket answers questions over UDP until Shutdown, and closes the socket. Several
// goroutines read from it.
func (s *Server) ServePacket(c net.PacketConn) error {
	conn, ok := c.(*net.UDPConn)
	if !ok {
		c.Close()
		return fmt.Errorf("serving DNS on %v: not a UDP socket", c.LocalAddr())
	}
	if !s.begin(conn) {
		conn.Close()
		return nil
	}
	defer s.end(conn)
	anyAddr := asksForDestination(conn)
	var readers sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		readers.Go(func() { s.servePackets(conn, anyAddr) })
	}
	readers.Wait()
	return nil
}

// asksForDestination reports whether a socket has no address of its own. Then it tells where
// each question was sent, since the answer must come from there.
func asksForDestination(conn *net.UDPConn) bool {
	if a, ok := conn.LocalAddr().(*net.UDPAddr); ok && !a.IP.IsUnspecified() {
		return false
	}
	err4 := ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	err6 := ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	return err4 == nil || err6 == nil
}

// controlSize is enough for the control message of either family.
const controlSize = 128

// servePackets answers one question after the other.
func (s *Server) servePackets(conn *net.UDPConn, anyAddr bool) {
	var in [dns.MinMsgSize * 8]byte
	var out [maxUDPSize * 2]byte
	var control [controlSize]byte
	for {
		n, controlled, client, err := readPacket(conn, in[:], control[:], anyAddr)
		switch {
		case s.ctx.Err() != nil:
			if err == nil {
				s.reply(conn, in[:n], out[:], control[:controlled], client)
			}
			return
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(time.Millisecond) // a shortage, or what an earlier answer met
			continue
		}
		s.reply(conn, in[:n], out[:], control[:controlled], client)
	}
}

// readPacket reads a packet, and with anyAddr where it was sent to.
func readPacket(conn *net.UDPConn, in, control []byte, anyAddr bool) (n, controlled int, client netip.AddrPort, err error) {
	if anyAddr {
		n, controlled, _, client, err = conn.ReadMsgUDPAddrPort(in, control)
		return n, controlled, client, err
	}
	n, client, err = conn.ReadFromUDPAddrPort(in)
	return n, 0, client, err
}

// reply answers a packet. A client that cannot be reached asks again.
func (s *Server) reply(conn *net.UDPConn, question, out, control []byte, client netip.AddrPort) {
	defer s.contain()
	answer := s.answer(question, client.Addr(), true, out)
	switch {
	case answer == nil:
	case len(control) > 0:
		conn.WriteMsgUDPAddrPort(answer, sourceOf(control), client)
	default:
		conn.WriteToUDPAddrPort(answer, client)
	}
}

// contain recovers from a panic, so that a question ends and not the gate.
func (s *Server) contain() {
	if p := recover(); p != nil {
		s.counts.add(Failed)
		s.config.Log.Error("panic", "door", protocol, "listener", s.config.Name, "error", fmt.Sprintf("%v\n%s", p, debug.Stack()))
	}
}

// sourceOf returns the control message for an answer from where a question was sent to. A
// socket of both families tells an IPv4 address as an IPv6 one, but does not take it so.
func sourceOf(control []byte) []byte {
	var m6 ipv6.ControlMessage
	if m6.Parse(control) != nil || m6.Dst == nil {
		var m4 ipv4.ControlMessage
		if m4.Parse(control) != nil {
			return nil
		}
		m6.Dst = m4.Dst
	}
	switch {
	case m6.Dst == nil:
		return nil
	case m6.Dst.To4() != nil:
		return (&ipv4.ControlMessage{Src: m6.Dst}).Marshal()
	}
	return (&ipv6.ControlMessage{Src: m6.Dst, IfIndex: interfaceOf(m6.Dst, m6.IfIndex)}).Marshal()
}

// interfaceOf returns the interface that the answer leaves by: only an address of one link
// needs it.
func interfaceOf(ip net.IP, index int) int {
	if ip.IsLinkLocalUnicast() {
		return index
	}
	return 0
}
