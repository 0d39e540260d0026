package milter

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// maxPacket bounds a packet, in bytes. Sendmail sends at most 64 KiB. Postfix sends a header
// field in one packet, up to its header_size_limit (100 KiB).
const maxPacket = 1 << 20

// keptBuffer is the largest buffer that a connection keeps between two messages.
const keptBuffer = 64 << 10

// Times to wait. A mail server waits at most an hour for its own client (Sendmail's
// Timeout.command; Postfix's smtpd_timeout is 5 minutes). It writes a packet at once.
const (
	negotiateTimeout = time.Minute
	commandTimeout   = 2 * time.Hour
	packetTimeout    = 2 * time.Minute
	writeTimeout     = 2 * time.Minute
)

// violation is an error of the mail server against the protocol.
type violation string

func (v violation) Error() string { return string(v) }

// errHalf says that a connection ended within a packet.
var errHalf = violation("the connection ended in the middle of a packet")

// readPacket reads a packet into buf, which may grow. The data is valid until the next call.
func readPacket(r *bufio.Reader, buf *[]byte) (command byte, data []byte, err error) {
	head, err := r.Peek(4)
	if err != nil {
		if len(head) > 0 {
			err = half(err)
		}
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if _, err := r.Discard(4); err != nil {
		return 0, nil, err
	}
	switch {
	case size == 0:
		return 0, nil, violation("a packet without a command")
	case size > maxPacket:
		return 0, nil, violation(fmt.Sprintf("a packet of %d bytes, at most %d are allowed", size, maxPacket))
	}
	// The buffer grows with what arrives, whatever the length says.
	data = (*buf)[:0]
	for rest := int(size); rest > 0; {
		n := min(rest, keptBuffer)
		pos := len(data)
		if cap(data)-pos < n {
			data = append(data, make([]byte, n)...)
		} else {
			data = data[:pos+n]
		}
		if _, err := io.ReadFull(r, data[pos:]); err != nil {
			return 0, nil, half(err)
		}
		rest -= n
	}
	*buf = data
	return data[0], data[1:], nil
}

// half returns the error for a connection that fails within a packet.
func half(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errHalf
	case errors.As(err, &timeout) && timeout.Timeout():
		return violation(fmt.Sprintf("the rest of a packet has not come within %v", packetTimeout))
	}
	return fmt.Errorf("reading a packet: %w", err)
}

// appendPacket appends a packet with its data in parts.
func appendPacket(b []byte, command byte, parts ...string) []byte {
	size := 1
	for _, p := range parts {
		size += len(p)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = append(b, command)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}
