package smtpfilter

import (
	"errors"
	"fmt"

	"spamgate/smtpfilter/wire"
)

// HeaderFault says why a message is refused because of the form of its header section, whoever
// the senders are.
type HeaderFault struct {
	Err  error  // for the log
	text string // of the reply
}

// Reply returns the reply to a message with an id.
func (f *HeaderFault) Reply(id string) wire.Reply { return wire.NewReply(554, f.text+"; id "+id) }

var (
	errTooManyHops = errors.New("too many Received fields: a mail loop")
	errFieldLong   = errors.New("a header field that is checked is longer than max_field_bytes allows")
	errLineLong    = errors.New("a line in a header field that is checked is longer than RFC 5322 allows")
)

// ErrTooManyAddresses says why a header was refused, or a sender not looked up, for the log.
var ErrTooManyAddresses = errors.New("more sender addresses in the header than max_addresses allows")

// RefusalOfBytes returns the reply to a message with an id that breaks a rule of wire's about its
// bytes or its size, or the zero Reply. It may have most bytes.
func (p *Policy) RefusalOfBytes(cause error, most int64, id string) wire.Reply {
	switch {
	case errors.Is(cause, wire.ErrBareNewline), errors.Is(cause, wire.ErrNUL):
		return wire.NewReply(550, fmt.Sprintf("5.5.2 Refused: %v; id %s", cause, id))
	case errors.Is(cause, wire.ErrTooLarge):
		return tooLarge(most)
	case errors.Is(cause, wire.ErrHeaderTooLarge):
		return wire.NewReply(552, fmt.Sprintf("5.3.4 Header section larger than %d bytes", p.HeaderLimit()))
	}
	return wire.Reply{}
}

// Loop returns the fault of a header section with too many Received fields, or nil.
func (p *Policy) Loop(section []byte) *HeaderFault {
	hops := countReceived(section)
	if hops <= p.maxHops() {
		return nil
	}
	// RFC 5321, section 6.3; RFC 3463: X.4.6, routing loop detected.
	return &HeaderFault{errTooManyHops, fmt.Sprintf("5.4.6 Too many hops (%d Received fields)", hops)}
}

// maxLine bounds a line of a field whose senders are judged, without its end (RFC 5322, section
// 2.1.1). Postfix inserts a line break and a space after so many bytes, also within an address,
// and cuts off what a field has beyond its header_size_limit. Then readers would see another
// sender than the gate.
const maxLine = 998

// Fault returns why the header cannot be judged, or nil. It counts once JudgeHeader has ended,
// and not if every recipient is exempt. RFC 3463: X.6.0, other or undefined media error.
func (s *HeaderSenders) Fault() *HeaderFault {
	most, field, line := s.policy.FieldLimit(), s.LongestField, s.LongestLine
	switch {
	case field.Bytes > most:
		return &HeaderFault{errFieldLong, fmt.Sprintf("5.6.0 Header field %s too long: %d bytes (limit %d)", field.Field, field.Bytes, most)}
	case line.Bytes > maxLine:
		return &HeaderFault{errLineLong, fmt.Sprintf("5.6.0 Header field %s has a line of %d bytes (limit %d)", line.Field, line.Bytes, maxLine)}
	case s.TooMany():
		return &HeaderFault{ErrTooManyAddresses, fmt.Sprintf("5.6.0 Too many or too complex sender addresses in the header (limit %d)", s.policy.AddressLimit())}
	}
	return nil
}
