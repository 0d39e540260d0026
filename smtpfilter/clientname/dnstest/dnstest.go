// Package dnstest is a name server for tests, on loopback over UDP and TCP or in memory. It
// records the queries.
package dnstest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Server is a name server. Its zone consists of the records that were added.
type Server struct {
	udp net.PacketConn // nil in memory
	tcp net.Listener   // nil in memory

	mu       sync.Mutex
	records  map[string][]dnsmessage.Resource // by name in lower case, which ends in a dot
	asked    []string                         // "PTR 1.2.0.192.in-addr.arpa. udp", in lower case
	changed  chan struct{}                    // closed with the next query
	behavior Behavior
	running  sync.WaitGroup
	ctx      context.Context // ends with the server
	cancel   context.CancelFunc
}

// Behavior says how a Server answers.
type Behavior struct {
	Fail     bool            // answers SERVFAIL
	Truncate bool            // truncates answers over UDP
	Hold     <-chan struct{} // answers once it is closed; nil: at once
	Negative uint32          // TTL of a missing record, in seconds
	Refuse   bool            // in memory: refuses connections
	Delay    time.Duration   // before each answer

	// Lie returns the messages that are sent instead of a reply. Over TCP a message
	// that is nil closes the connection.
	Lie func(reply []byte, network string) [][]byte
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
	s := newServer()
	s.udp, s.tcp = udp, tcp
	s.running.Go(s.serveUDP)
	s.running.Go(s.serveTCP)
	t.Cleanup(func() {
		udp.Close()
		tcp.Close()
		s.close()
	})
	return s
}

// NewMemory starts a server without sockets, which only its Dial reaches. So it works in
// the bubble of a synctest, whose clock stands still while a goroutine reads a socket.
func NewMemory(t testing.TB) *Server {
	s := newServer()
	t.Cleanup(s.close)
	return s
}

func newServer() *Server {
	s := &Server{records: map[string][]dnsmessage.Resource{}, changed: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *Server) close() {
	s.cancel()
	s.running.Wait()
}

// Addr returns the server's address, over UDP and TCP.
func (s *Server) Addr() string { return s.tcp.Addr().String() }

// Dial connects to this server, whatever the address.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if s.tcp != nil {
		return new(net.Dialer).DialContext(ctx, network, s.Addr())
	}
	s.mu.Lock()
	refuse := s.behavior.Refuse
	s.mu.Unlock()
	if refuse {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	near, far := net.Pipe()
	s.running.Go(func() {
		defer far.Close()
		defer context.AfterFunc(s.ctx, func() { far.Close() })()
		if network == "tcp" {
			s.serveStream(far)
		} else {
			s.servePipe(far)
		}
	})
	return near, nil
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

// AddText adds a text of a name, in as many strings as it needs.
func (s *Server) AddText(name, text string, ttl uint32) {
	var parts []string
	for part := range slices.Chunk([]byte(text), 255) {
		parts = append(parts, string(part))
	}
	s.add(name+".", ttl, dnsmessage.TypeTXT, &dnsmessage.TXTResource{TXT: parts})
}

// AddMX adds a mail server of a name.
func (s *Server) AddMX(name, host string, ttl uint32) {
	s.add(name+".", ttl, dnsmessage.TypeMX, &dnsmessage.MXResource{Pref: 10, MX: dnsmessage.MustNewName(host + ".")})
}

// AddAlias adds an alias (CNAME) of another name. Answers have its records too.
func (s *Server) AddAlias(name, target string, ttl uint32) {
	s.add(name+".", ttl, dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(target + ".")})
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
	key := strings.ToLower(name)
	s.records[key] = append(s.records[key], dnsmessage.Resource{
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
			for _, answer := range s.answers(query, "udp") {
				s.udp.WriteTo(answer, from)
			}
		})
	}
}

// servePipe answers the query on a connection in memory, each Write of which is a
// datagram.
func (s *Server) servePipe(c net.Conn) {
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	if err != nil {
		return
	}
	for _, answer := range s.answers(buf[:n], "udp") {
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
	io.Copy(io.Discard, c) // a datagram socket has no end; the client closes its own
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
			s.serveStream(c)
		})
	}
}

// serveStream answers the one query that clients of these tests send on a connection.
func (s *Server) serveStream(c net.Conn) {
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, query); err != nil {
		return
	}
	for _, answer := range s.answers(query, "tcp") {
		if answer == nil {
			return
		}
		c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}
