package resolver

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// udpSize is the size of answers over UDP that we ask for. It passes every network
	// unfragmented (dnsflagday.net/2020).
	udpSize = 1232

	// maxStrays is the number of datagrams to a question that are not its answer. After
	// that somebody tries to forge the answer, and TCP is asked.
	maxStrays = 16

	// MaxName is the longest name in DNS, without its final dot (RFC 1035, section
	// 2.3.4, counts a length byte for each label and one for the root).
	MaxName = 253
)

// errUseTCP says that the answer must be asked for over TCP.
var errUseTCP = errors.New("no usable answer over UDP")

// errNoReply says that the server answered with something that is not a reply.
var errNoReply = errors.New("not a reply to the question")

// query is one question, as it is sent.
type query struct {
	name string // with random upper and lower case, and a final dot
	kind uint16
	id   uint16
	wire []byte
}

// newQuery returns a query with a random id and a random case of its letters: a forger
// who does not see the query has to guess them, and the port of its socket, too
// (draft-vixie-dnsext-dns0x20).
func newQuery(name string, kind uint16, edns bool) (query, error) {
	var random [2 + MaxName/8 + 1]byte
	rand.Read(random[:])
	q := query{kind: kind, id: binary.BigEndian.Uint16(random[:])}
	letters := []byte(dns.Fqdn(name))
	for i, c := range letters {
		if c >= 'a' && c <= 'z' && random[2+i/8]>>(i%8)&1 != 0 {
			letters[i] = c - 'a' + 'A'
		}
	}
	q.name = string(letters)
	m := dns.Msg{
		MsgHdr:   dns.MsgHdr{Id: q.id, RecursionDesired: true},
		Question: []dns.Question{{Name: q.name, Qtype: kind, Qclass: dns.ClassINET}},
	}
	if edns {
		m.SetEdns0(udpSize, false)
	}
	var err error
	q.wire, err = m.Pack()
	return q, err
}

// parse returns a message if it is a reply to the query. Over UDP it returns errUseTCP
// if the reply is truncated, or does not repeat the case of the letters: a forger may
// have sent it, or a resolver that has lost it.
func (q query) parse(wire []byte, udp bool) (*dns.Msg, error) {
	if len(wire) < 12 || binary.BigEndian.Uint16(wire) != q.id || wire[2]&0x80 == 0 {
		return nil, errNoReply
	}
	if truncated := wire[2]&0x02 != 0; truncated && udp {
		return nil, errUseTCP
	}
	m := new(dns.Msg)
	if m.Unpack(wire) != nil || m.Opcode != dns.OpcodeQuery || len(m.Question) > 1 {
		return nil, errNoReply
	}
	if len(m.Question) == 0 {
		// Some servers that do not understand a query do not repeat it.
		if m.Rcode == dns.RcodeFormatError || m.Rcode == dns.RcodeNotImplemented {
			return m, nil
		}
		return nil, errNoReply
	}
	asked := m.Question[0]
	switch {
	case asked.Qtype != q.kind || asked.Qclass != dns.ClassINET || !strings.EqualFold(asked.Name, q.name):
		return nil, errNoReply
	case udp && asked.Name != q.name:
		return nil, errUseTCP
	}
	return m, nil
}

// Dial connects to a resolver, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// exchange asks one server, over UDP and if need be over TCP. A server that does not
// know EDNS is asked again without (RFC 6891, section 6.2.2).
func (d Dial) exchange(ctx context.Context, server, name string, kind uint16) (*dns.Msg, error) {
	m, err := d.exchangeEDNS(ctx, server, name, kind, true)
	if err == nil && (m.Rcode == dns.RcodeFormatError || m.Rcode == dns.RcodeNotImplemented) {
		m, err = d.exchangeEDNS(ctx, server, name, kind, false)
	}
	return m, err
}

func (d Dial) exchangeEDNS(ctx context.Context, server, name string, kind uint16, edns bool) (*dns.Msg, error) {
	q, err := newQuery(name, kind, edns)
	if err != nil {
		return nil, err
	}
	m, err := d.send(ctx, "udp", server, q, readDatagrams)
	if err == errUseTCP {
		m, err = d.send(ctx, "tcp", server, q, readStream)
	}
	return m, err
}

// send opens a connection of its own for a query. So the kernel chooses a random port,
// and gives us datagrams of this server only.
func (d Dial) send(ctx context.Context, network, server string, q query,
	read func(net.Conn, query) (*dns.Msg, error)) (*dns.Msg, error) {
	c, err := d(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	if deadline, ok := ctx.Deadline(); ok {
		c.SetDeadline(deadline)
	}
	wire := q.wire
	if network == "tcp" {
		wire = append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)
	}
	if _, err := c.Write(wire); err != nil {
		return nil, err
	}
	return read(c, q)
}

// buffers are for datagrams, which may be longer than what we ask for.
var buffers = sync.Pool{New: func() any { return new([4096]byte) }}

// readDatagrams reads until the reply to the query comes.
func readDatagrams(c net.Conn, q query) (*dns.Msg, error) {
	buf := buffers.Get().(*[4096]byte)
	defer buffers.Put(buf)
	for range maxStrays {
		n, err := c.Read(buf[:])
		if err != nil {
			return nil, err
		}
		if m, err := q.parse(buf[:n], true); err != errNoReply {
			return m, err
		}
	}
	return nil, errUseTCP
}

// readStream reads one message, which follows its length (RFC 1035, section 4.2.2).
func readStream(c net.Conn, q query) (*dns.Msg, error) {
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, err
	}
	wire := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, wire); err != nil {
		return nil, err
	}
	return q.parse(wire, false)
}
