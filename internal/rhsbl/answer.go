package rhsbl

import (
	"encoding/binary"
	"net/netip"

	"github.com/miekg/dns"
)

const (
	headerSize = 12
	minUDPSize = 512  // what every client takes (RFC 1035, section 4.2.1)
	maxUDPSize = 1232 // passes everywhere without fragments (RFC 9715, appendix A)
)

// answer returns the answer to a message, in buf if it fits there, or nil if there is none.
func (s *Server) answer(question []byte, client netip.Addr, udp bool, buf []byte) []byte {
	if len(question) < headerSize || question[2]&0x80 != 0 {
		return nil // an answer to an answer would begin a loop
	}
	st := s.state.Load()
	client = client.Unmap()
	over := pass
	if udp {
		if over = s.limiter.take(client, st.NetworkAnswersPerSecond); over == drop {
			s.counts.add(Dropped)
			return nil
		}
	}
	req, opt, rcode := parse(question)
	if rcode != dns.RcodeSuccess {
		s.counts.add(Invalid)
		return appendHeader(buf[:0], question, rcode)
	}
	r := newReply(req, opt)
	size := dns.MaxMsgSize
	if udp {
		size = udpSize(opt)
	}
	var o Outcome
	switch {
	case opt != nil && opt.Version() != 0: // RFC 6891, section 6.1.3
		r.Rcode, o = dns.RcodeBadVers, Invalid
	case !st.allows(client):
		r.Rcode, o = dns.RcodeRefused, Refused
	case over == slip:
		r.Truncated, o = true, Truncated
	default:
		o = s.fill(st, r)
	}
	s.counts.add(o)
	packed, err := r.PackBuffer(buf)
	if err == nil && len(packed) > size {
		r.Truncate(size)
		packed, err = r.PackBuffer(buf)
	}
	if err != nil {
		return appendHeader(buf[:0], question, dns.RcodeServerFailure)
	}
	return packed
}

// parse parses a question. The code is one of an error if it is not one question.
func parse(question []byte) (req *dns.Msg, opt *dns.OPT, rcode int) {
	if question[2]>>3&15 != dns.OpcodeQuery {
		return nil, nil, dns.RcodeNotImplemented
	}
	questions, others := binary.BigEndian.Uint16(question[4:]), binary.BigEndian.Uint32(question[6:])
	req = new(dns.Msg)
	if questions != 1 || others != 0 || req.Unpack(question) != nil || len(req.Question) != 1 {
		return nil, nil, dns.RcodeFormatError
	}
	for _, rr := range req.Extra {
		o, ok := rr.(*dns.OPT)
		if !ok {
			continue
		}
		if opt != nil || o.Hdr.Name != "." { // RFC 6891, section 6.1.1
			return nil, nil, dns.RcodeFormatError
		}
		opt = o
	}
	return req, opt, dns.RcodeSuccess
}

// newReply returns an answer with nothing in it yet. The name has the letters of the
// question: resolvers compare them.
func newReply(req *dns.Msg, opt *dns.OPT) *dns.Msg {
	r := &dns.Msg{
		MsgHdr:   dns.MsgHdr{Id: req.Id, Response: true, RecursionDesired: req.RecursionDesired},
		Compress: true,
		Question: req.Question,
	}
	if opt != nil {
		own := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}}
		own.SetUDPSize(maxUDPSize)
		own.SetDo(opt.Do()) // RFC 3225, section 3
		r.Extra = []dns.RR{own}
	}
	return r
}

// udpSize returns how long an answer may be.
func udpSize(opt *dns.OPT) int {
	if opt == nil {
		return minUDPSize
	}
	return int(min(max(opt.UDPSize(), minUDPSize), maxUDPSize))
}

// appendHeader appends an answer that is only a header.
func appendHeader(b, question []byte, rcode int) []byte {
	b = append(b, question[:2]...)
	b = append(b, 0x80|question[2]&0x79, byte(rcode)) // the opcode and RD are the question's
	return append(b, make([]byte, headerSize-4)...)
}
