// Package dnstest is a name server on loopback for tests, over UDP and TCP. It records
// the queries.
package dnstest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is a name server. Its zone consists of the records that were added.
type Server struct {
	udp net.PacketConn
	tcp net.Listener

	mu       sync.Mutex
	records  map[string][]dnsmessage.Resource // by name, which ends in a dot
	asked    []string                         // "PTR 1.2.0.192.in-addr.arpa. udp"
	changed  chan struct{}                    // closed with the next query
	behavior Behavior
	running  sync.WaitGroup
	ctx      context.Context // ends with the server
}

// Behavior says how a Server answers.
type Behavior struct {
	Fail     bool            // answers SERVFAIL
	Truncate bool            // truncates answers over UDP
	Hold     <-chan struct{} // answers once it is closed; nil: at once
	Negative uint32          // TTL of a missing record, in seconds
}

// New starts a server at an address such as "127.0.0.1:0". It ends with the test.
func New(t testing.TB, addr string) *Server {
	t.Helper()
	tcp, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		tcp.Close()
		t.Fatal(err)
	}
	s := &Server{udp: udp, tcp: tcp, records: map[string][]dnsmessage.Resource{}, changed: make(chan struct{})}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.Background())
	s.running.Go(s.serveUDP)
	s.running.Go(s.serveTCP)
	t.Cleanup(func() {
		cancel()
		udp.Close()
		tcp.Close()
		s.running.Wait()
	})
	return s
}

// Addr returns the server's address, over UDP and TCP.
func (s *Server) Addr() string { return s.tcp.Addr().String() }

// Dial connects to this server, whatever the address.
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, s.Addr())
}

// Behave sets how the server answers from now on.
func (s *Server) Behave(b Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behavior = b
}

// AddHost adds the address of a name and the name of that address, with a TTL in seconds.
func (s *Server) AddHost(name, addr string, ttl uint32) {
	s.AddPTR(addr, name, ttl)
	s.AddAddr(name, addr, ttl)
}

// AddPTR adds the name of an address.
func (s *Server) AddPTR(addr, name string, ttl uint32) {
	s.add(Reverse(netip.MustParseAddr(addr)), ttl, dnsmessage.TypePTR, &dnsmessage.PTRResource{PTR: dnsmessage.MustNewName(name + ".")})
}

// AddAddr adds an address of a name.
func (s *Server) AddAddr(name, addr string, ttl uint32) {
	a := netip.MustParseAddr(addr)
	if a.Is4() {
		s.add(name+".", ttl, dnsmessage.TypeA, &dnsmessage.AResource{A: a.As4()})
	} else {
		s.add(name+".", ttl, dnsmessage.TypeAAAA, &dnsmessage.AAAAResource{AAAA: a.As16()})
	}
}

// Clear empties the zone.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.records)
}

func (s *Server) add(name string, ttl uint32, kind dnsmessage.Type, body dnsmessage.ResourceBody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[name] = append(s.records[name], dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET, TTL: ttl},
		Body:   body,
	})
}

// Asked returns the queries so far, as "PTR 1.2.0.192.in-addr.arpa. udp".
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Wait waits for n queries, and fails the test if the context ends first.
func (s *Server) Wait(ctx context.Context, t testing.TB, n int) {
	t.Helper()
	for {
		s.mu.Lock()
		asked, changed := len(s.asked), s.changed
		s.mu.Unlock()
		if asked >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("asked %d times, want %d", asked, n)
		}
	}
}

func (s *Server) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		query := slices.Clone(buf[:n])
		s.running.Go(func() {
			if answer := s.answer(query, "udp"); answer != nil {
				s.udp.WriteTo(answer, from)
			}
		})
	}
}

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() {
			defer c.Close()
			defer context.AfterFunc(s.ctx, func() { c.Close() })()
			// Package net sends one query on each connection.
			var length [2]byte
			if _, err := io.ReadFull(c, length[:]); err != nil {
				return
			}
			query := make([]byte, binary.BigEndian.Uint16(length[:]))
			if _, err := io.ReadFull(c, query); err != nil {
				return
			}
			answer := s.answer(query, "tcp")
			c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		})
	}
}
